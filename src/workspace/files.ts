import type { BigIntStats } from 'node:fs'
import type { Journal } from './journal.js'
import type { Workspace } from './workspace.js'

/** A regular file held open; every later read goes through `fd`, so no swap of names can reach another file. */
export interface OpenedFile {
  fd: number
  stat: BigIntStats
  /** Absolute real path. */
  path: string
  /** As shown to the client: relative to the workspace root where it lies inside, else absolute. */
  display: string
  close(): void
}

/** Opens a regular file for reading by the safe walk. */
export declare function openFile(workspace: Workspace, path: string): OpenedFile

export interface ChangedFile {
  path: string
  display: string
  before: Buffer | undefined
  after: Buffer
  created: boolean
}

/**
 * Changes one file under its lock: reads the whole current content, asks `change` for the new bytes, journals the
 * earlier content, then replaces the file so that it holds the old or the new content whatever happens (FI-06, FI-15).
 * `change` is pure and refuses by throwing; `current` is undefined where no file is there (only with `create`).
 */
export declare function changeFile(
  context: { workspace: Workspace; journal: Journal; signal: AbortSignal },
  path: string,
  change: (current: Buffer | undefined) => Buffer,
  options?: { create?: boolean },
): Promise<ChangedFile>

import { readSync } from 'node:fs'
import { KikiError } from '../../lib/errors.js'
import { runInSlices } from '../../lib/slices.js'
import { diffOf } from '../../workspace/diff-files.js'
import { type Change, MAX_CHANGE_BYTES, openFile } from '../../workspace/files.js'
import { shownPath } from '../../workspace/list.js'
import type { Workspace } from '../../workspace/workspace.js'
import type { PreviewContext } from '../tool.js'

/** Characters of a difference that the owner is shown: all of it, for every file that a person can look through (AP-03). */
export const SHOWN_CHARS = 4_000_000

/** What a change of one file would do, in words and as a diff. @throws KikiError as the change would. */
export async function previewChange(
  { workspace, signal }: PreviewContext,
  path: string,
  change: Change,
  create: boolean,
): Promise<string> {
  const { before, display } = readCurrent(workspace, path, create)
  const work = change(before)
  const after = Buffer.isBuffer(work) ? work : await runInSlices(work, signal)
  if (before?.equals(after)) return `${shownPath(display)} already has this content.`
  const verb = before === undefined ? 'Creates' : 'Changes'
  const diff = diffOf({ before, after, display, maxChars: SHOWN_CHARS })
  return `${verb} ${shownPath(display)} (${before?.length ?? 0} → ${after.length} bytes).\n${diff}`
}

/** A file as it is now; with `create` it may be missing. */
export function readCurrent(
  workspace: Workspace,
  path: string,
  create: boolean,
): { before: Buffer | undefined; display: string } {
  try {
    const opened = openFile(workspace, path)
    try {
      return { before: readFd(opened.fd, Number(opened.stat.size), path), display: opened.display }
    } finally {
      opened.close()
    }
  } catch (error) {
    if (create && error instanceof KikiError && error.code === 'not_found') return { before: undefined, display: path }
    throw error
  }
}

function readFd(fd: number, size: number, path: string): Buffer {
  if (size > MAX_CHANGE_BYTES) {
    throw new KikiError('too_large', `${path} has ${size} bytes; files up to ${MAX_CHANGE_BYTES} can be edited.`, {
      hint: 'Change it with a command.',
    })
  }
  const bytes = Buffer.alloc(size)
  let length = 0
  for (let count = -1; count !== 0 && length < size; length += count)
    count = readSync(fd, bytes, length, size - length, length)
  return bytes.subarray(0, length)
}

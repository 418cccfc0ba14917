import type { BigIntStats } from 'node:fs'
import { descendLinux } from './descend-linux.js'
import { descendPortable } from './descend-portable.js'

/** A folder that is held open: names below it are looked up in this folder, wherever its path leads later. */
export interface Held {
  fd: number
  /** Absolute real path at the time it was reached. */
  path: string
  stat: BigIntStats
}

/** Something found in a held folder, never followed if it is a link; not opened for reading or writing yet. */
export interface Node {
  /** Undefined only where the platform cannot hold a file without opening it. */
  fd: number | undefined
  stat: BigIntStats
}

/** The few system calls that the walk is made of, one object a platform. All throw Node's own system errors. */
export interface Descend {
  /** A path for system calls that act on `name` in the held folder. */
  at(folder: Held, name: string): string
  /** Holds a root; undefined where the path is not a real folder any more (gone, no folder, or led through a link). */
  openRoot(path: string): Held | undefined
  /** Undefined where the name does not exist. */
  openNode(folder: Held, name: string): Node | undefined
  /** Opens exactly this node (a regular file or a folder) with access flags. */
  reopen(folder: Held, name: string, node: Node, flags: number): number
  /** Whether the held folder is still at its path. */
  stillThere(folder: Held): boolean
}

export const descend: Descend = process.platform === 'linux' ? descendLinux : descendPortable

export function sameNode(a: { dev: bigint; ino: bigint }, b: { dev: bigint; ino: bigint }): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

/** Whether an `open` failed because the path is not there, is no folder, or is a link. */
export function isElsewhere(code: string | undefined): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}

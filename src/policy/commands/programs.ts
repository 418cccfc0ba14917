import type { Word } from './types.js'

// Where a system keeps its own programs; elsewhere a file can have any name.
const SYSTEM_FOLDERS = /^\/(?:usr\/)?s?bin\/[^/]+$|^\/usr\/local\/s?bin\/[^/]+$|^\/opt\/homebrew\/bin\/[^/]+$/

export interface Program {
  /** Last component of the path. */
  name: string
  /** Given by a path that does not lead to a system's own folder. */
  foreign: boolean
}

/** The program that a first word names, or undefined where that is known only when the script runs. */
export function programOf(word: Word | undefined): Program | undefined {
  if (word === undefined || !word.known || word.value === '') return undefined
  const path = word.value
  const name = path.slice(path.lastIndexOf('/') + 1)
  return { name: name.replace(/\.exe$/i, ''), foreign: path.includes('/') && !SYSTEM_FOLDERS.test(path) }
}

/** The name that tables know: small letters, and `python3.12` or `gcc-13` without their version. */
export function canonicalName(name: string, isKnown: (name: string) => boolean): string {
  const lower = name.toLowerCase()
  const plain = lower.replace(/-?\d+(?:\.\d+)*$/, '')
  return [name, lower, plain].find(isKnown) ?? lower
}

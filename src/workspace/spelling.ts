import { type Dirent, lstatSync, opendirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemCode } from '../lib/errors.js'

/** Entries of a folder whose names are tried. */
const TRIED = 16

/**
 * Tells whether the file system takes other spellings of a path for the same file: other letter cases, another Unicode form (PA-04).
 * On macOS and Windows it is taken to; elsewhere folders are tried, by names that are in them, once each.
 * @param platform as `process.platform`.
 */
export function createSpellings(platform: NodeJS.Platform = process.platform): (path: string) => boolean {
  const known = new Map<string, boolean>()
  const inFolder = (folder: string): boolean => {
    const seen = known.get(folder)
    if (seen !== undefined) return seen
    // A folder that tells nothing, being empty or not there, is taken for one like the folder that it is in.
    const folds = tried(folder) ?? (folder !== dirname(folder) && inFolder(dirname(folder)))
    known.set(folder, folds)
    return folds
  }
  return (path) => platform === 'darwin' || platform === 'win32' || inFolder(dirname(path))
}

/** Undefined where no entry tells. */
function tried(folder: string): boolean | undefined {
  for (const name of someNames(folder)) {
    for (const other of otherSpellings(name)) {
      const answer = isSame(folder, name, other)
      if (answer !== undefined) return answer
    }
  }
  return undefined
}

function otherSpellings(name: string): string[] {
  const others = [name.toUpperCase(), name.toLowerCase(), name.normalize('NFD'), name.normalize('NFC')]
  return [...new Set(others)].filter((other) => other !== name)
}

/** Undefined where both are entries of their own: two hard links of one file. */
function isSame(folder: string, name: string, other: string): boolean | undefined {
  const [one, two] = [name, other].map((each) => lstatSync(join(folder, each), { bigint: true, throwIfNoEntry: false }))
  if (one === undefined || two === undefined) return one === undefined ? undefined : false
  if (one.dev !== two.dev || one.ino !== two.ino) return false
  if (one.isDirectory() || one.nlink === 1n) return true
  return readdirSync(folder).includes(other) ? undefined : true
}

function someNames(folder: string): string[] {
  const names: string[] = []
  try {
    const opened = opendirSync(folder, { bufferSize: TRIED })
    try {
      for (
        let entry: Dirent | null = opened.readSync();
        entry !== null && names.length < TRIED;
        entry = opened.readSync()
      )
        names.push(entry.name)
    } finally {
      opened.closeSync()
    }
  } catch (error) {
    // Not there, no folder, or closed to us: it tells nothing.
    if (systemCode(error) === undefined) throw error
  }
  return names
}

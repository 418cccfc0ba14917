import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCode } from './errors.js'

/**
 * Makes a folder and its missing parents, each with mode 0700. In place of `mkdir` with `recursive`, which never returns where
 * the kernel answers ENOENT although the parent is there (below /proc).
 * @returns the first folder that was made, undefined where all were there.
 * @throws the system's error, also where something that is no folder stands in the way.
 */
export function makePrivateFolders(path: string): string | undefined {
  try {
    mkdirSync(path, { mode: 0o700 })
    return path
  } catch (error) {
    const parent = dirname(path)
    if (systemCode(error) === 'EEXIST') return requireFolder(path, error)
    if (systemCode(error) !== 'ENOENT' || parent === path) throw error
    const first = makePrivateFolders(parent)
    if (first === undefined) throw error
    makePrivateFolders(path)
    return first
  }
}

function requireFolder(path: string, error: unknown): undefined {
  if (!statSync(path).isDirectory()) throw error
  return undefined
}

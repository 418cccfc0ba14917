import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { systemCode } from '../lib/errors.js'

/** Space that is kept for the ends of what was begun (GU-42). */
export const BALLAST_BYTES = 8 * 1024 * 1024

/** A file that takes up space until the disk is full; then its place is given to what must still be written. */
export interface Ballast {
  /** Puts it there where it is missing. @returns false when the disk has no place for it. */
  restore(): boolean
  /** Gives its place free. @returns false when there was none to give. */
  free(): boolean
}

export function createBallast(file: string): Ballast {
  let there = false
  const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return {
    restore() {
      if (there) return true
      if (size() !== BALLAST_BYTES) there = fill(file)
      else there = true
      return there
    },
    free() {
      there = false
      const had = size() > 0
      rmSync(file, { force: true })
      return had
    },
  }
}

/** Random bytes, which no file system can leave out or compress away. */
function fill(file: string): boolean {
  const fd = openSync(file, 'w', 0o600)
  try {
    const bytes = randomBytes(BALLAST_BYTES)
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
    return true
  } catch (error) {
    if (!NO_SPACE.includes(systemCode(error) ?? '')) throw error
    rmSync(file, { force: true })
    return false
  } finally {
    closeSync(fd)
  }
}

const NO_SPACE = ['ENOSPC', 'EDQUOT', 'EIO']

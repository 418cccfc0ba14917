import { closeSync, openSync, writeSync } from 'node:fs'
import { systemCode } from '../../src/lib/errors.js'

/** Fills the disk that `file` is on, to the last byte. */
export function fillUp(file: string): void {
  const fd = openSync(file, 'a')
  try {
    for (const size of [65_536, 4096, 512, 1]) while (wrote(fd, size)) {}
  } finally {
    closeSync(fd)
  }
}

function wrote(fd: number, size: number): boolean {
  try {
    return writeSync(fd, Buffer.alloc(size, 1)) > 0
  } catch (error) {
    if (systemCode(error) === 'ENOSPC') return false
    throw error
  }
}

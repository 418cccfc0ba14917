import { readFileSync } from 'node:fs'
import { KikiError } from '../lib/errors.js'
import { type OpenedFile, openFile } from './files.js'
import type { Workspace } from './workspace.js'

/** A regular file's bytes by the safe walk. @throws KikiError as `openFile`, `too_large`. */
export function readFile(workspace: Workspace, path: string, maxBytes: number): { bytes: Buffer; display: string } {
  const file = openFile(workspace, path)
  try {
    return { bytes: readOpened(file, maxBytes), display: file.display }
  } finally {
    file.close()
  }
}

/** The whole of an open file that was not read by position yet. @throws KikiError `too_large`. */
export function readOpened(file: OpenedFile, maxBytes: number): Buffer {
  const { size } = file.stat
  if (size > BigInt(maxBytes)) {
    throw new KikiError('too_large', `"${file.display}" has ${size} bytes; at most ${maxBytes} are read at once.`, {
      hint: 'Look at a smaller part of it that a command makes.',
      data: { size: Number(size), limit: maxBytes },
    })
  }
  return readFileSync(file.fd)
}

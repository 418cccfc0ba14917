import { KikiError } from '../lib/errors.js'
import { type OpenedFile, openFile } from './files.js'
import type { Workspace } from './workspace.js'
import { readUnchanged } from './write.js'

/** A regular file's bytes by the safe walk. @throws KikiError as `openFile` and {@link readOpened}. */
export function readFile(workspace: Workspace, path: string, maxBytes: number): { bytes: Buffer; display: string } {
  const file = openFile(workspace, path)
  try {
    return { bytes: readOpened(file, maxBytes), display: file.display }
  } finally {
    file.close()
  }
}

/** The whole of an open file as it was when it was opened. @throws KikiError `too_large`, `conflict` where it was changed since. */
export function readOpened(file: OpenedFile, maxBytes: number): Buffer {
  const { size } = file.stat
  if (size > BigInt(maxBytes)) {
    throw new KikiError('too_large', `"${file.display}" has ${size} bytes; at most ${maxBytes} are read at once.`, {
      hint: 'Look at a smaller part of it that a command makes.',
      data: { size: Number(size), limit: maxBytes },
    })
  }
  const bytes = readUnchanged(file.fd, file.stat)
  if (bytes !== undefined) return bytes
  throw new KikiError('conflict', `"${file.display}" was changed by something else while it was read.`, {
    hint: 'Repeat the call once it is written.',
    data: { path: file.display },
  })
}

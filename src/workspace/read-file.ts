import { readFileSync } from 'node:fs'
import { openFile } from './files.js'
import type { Workspace } from './workspace.js'
import { tooLarge } from './write.js'

/** A regular file's bytes by the safe walk. @throws KikiError as `openFile`, `too_large`. */
export function readFile(workspace: Workspace, path: string, maxBytes: number): { bytes: Buffer; display: string } {
  const file = openFile(workspace, path)
  try {
    if (file.stat.size > BigInt(maxBytes)) throw tooLarge(file.display, file.stat.size, maxBytes)
    return { bytes: readFileSync(file.fd), display: file.display }
  } finally {
    file.close()
  }
}

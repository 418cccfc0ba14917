import { applyPatch } from './files/apply-patch.js'
import { changes } from './files/changes.js'
import { remove } from './files/delete.js'
import { edit } from './files/edit.js'
import { list } from './files/list.js'
import { makeDirectory } from './files/make-directory.js'
import { move } from './files/move.js'
import { multiEdit } from './files/multi-edit.js'
import { createRead } from './files/read.js'
import { undo } from './files/undo.js'
import { write } from './files/write.js'
import { readMedia } from './media/read-media.js'
import { glob } from './search/glob.js'
import { grep } from './search/grep.js'
import { bash } from './shell/bash.js'
import { processInput } from './shell/process-input.js'
import { processOutput } from './shell/process-output.js'
import type { Tool } from './tool.js'

/** Every native tool, in the order in which clients see them. */
export const CATALOG: readonly Tool[] = [
  createRead(),
  write,
  edit,
  multiEdit,
  applyPatch,
  list,
  move,
  remove,
  makeDirectory,
  changes,
  undo,
  grep,
  glob,
  readMedia,
  bash,
  processOutput,
  processInput,
]

const BY_NAME = new Map(CATALOG.map((tool) => [tool.name, tool]))

export function findNative(name: string): Tool | undefined {
  return BY_NAME.get(name)
}

import { remove as deleteTool } from './files/delete.js'
import { editTool } from './files/edit.js'
import { list as listTool } from './files/list.js'
import { makeDirectory as makeDirectoryTool } from './files/make-directory.js'
import { move as moveTool } from './files/move.js'
import { multiEditTool } from './files/multi-edit.js'
import { createRead } from './files/read.js'
import { write as writeTool } from './files/write.js'
import type { Tool } from './tool.js'

/** Every native tool, in the order in which clients see them. */
export const CATALOG: readonly Tool[] = [
  createRead(),
  writeTool,
  editTool,
  multiEditTool,
  listTool,
  moveTool,
  deleteTool,
  makeDirectoryTool,
]

const BY_NAME = new Map(CATALOG.map((tool) => [tool.name, tool]))

export function findNative(name: string): Tool | undefined {
  return BY_NAME.get(name)
}

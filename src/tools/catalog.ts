import type { Tool } from './tool.js'

/** Every native tool, in the order in which clients see them. */
export const CATALOG: readonly Tool[] = []

export function findNative(name: string): Tool | undefined {
  return CATALOG.find((tool) => tool.name === name)
}

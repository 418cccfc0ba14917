import type { Node } from 'web-tree-sitter'

/** A node of the syntax tree as plain data, so that the parser's memory can be given back at once. */
export interface SyntaxNode {
  type: string
  named: boolean
  text: string
  start: number
  end: number
  children: readonly SyntaxNode[]
  /** It, or one of its children, could not be parsed (`ERROR`, `MISSING`). */
  broken: boolean
}

const DEPTH_LIMIT = 200

/** Copies a tree. What is nested deeper than 200 becomes a broken leaf, which makes the script opaque. */
export function toSyntax(node: Node, depth = 0): SyntaxNode {
  const tooDeep = depth > DEPTH_LIMIT
  const children = tooDeep ? [] : node.children.map((child) => toSyntax(child, depth + 1))
  return {
    type: node.type,
    named: node.isNamed,
    text: node.text,
    start: node.startIndex,
    end: node.endIndex,
    children,
    broken: tooDeep || node.isError || node.isMissing || children.some((child) => child.broken),
  }
}

/** Every node below, parents first. */
export function* descendants(node: SyntaxNode): Generator<SyntaxNode> {
  for (const child of node.children) {
    yield child
    yield* descendants(child)
  }
}

import type { SyntaxNode } from './syntax.js'
import { isPlainHeredoc } from './tokens.js'

/**
 * Whether bash ends a here-document where the parser ends it, and whether its text expands to more than the parser
 * saw. Anything but one plain delimiter alone on its line is refused.
 */
export function doubtAboutHeredoc(node: SyntaxNode, script: string): string | undefined {
  const start = node.children.find((child) => child.type === 'heredoc_start')
  const body = node.children.find((child) => child.type === 'heredoc_body')
  const end = node.children.find((child) => child.type === 'heredoc_end')
  if (start === undefined || end === undefined) return 'a here-document without an end'
  const delimiter = start.text.replace(/^(['"])(.*)\1$/, '$2')
  const tabs = node.children.some((child) => child.text === '<<-')
  const from = script.indexOf('\n', start.end) + 1
  if (from === 0 || terminatorOf(script, from, delimiter, tabs) !== end.start)
    return 'a here-document that bash may end elsewhere'
  if (start.text !== delimiter || body === undefined) return undefined
  if (body.text.includes('\\\n')) return 'a line continuation within a here-document'
  return body.children.length > 0 || isPlainHeredoc(body.text) ? undefined : 'a here-document that expands'
}

function terminatorOf(script: string, from: number, delimiter: string, tabs: boolean): number {
  let at = from
  for (const line of script.slice(from).split('\n')) {
    const indent = tabs ? (/^\t*/.exec(line)?.[0].length ?? 0) : 0
    if (line.slice(indent) === delimiter) return at + indent
    at += line.length + 1
  }
  return -1
}

import type { SyntaxNode } from './syntax.js'
import type { Word } from './types.js'

interface Draft {
  text: string
  value: string
  prefix: string
  certain: boolean
  static: boolean
  known: boolean
  splits: boolean
  substitution: boolean
  variables: string[]
  /** The word with an `x` for all that is quoted or expanded: what globs, braces and `~` are looked for in. */
  skeleton: string
}

const EXPANSIONS = new Set(['simple_expansion', 'expansion', 'command_substitution', 'arithmetic_expansion'])

/** Reads one word node: quotes removed as bash removes them, expansions marked. */
export function readWord(node: SyntaxNode): Word {
  const draft: Draft = {
    text: '',
    value: '',
    prefix: '',
    certain: true,
    static: true,
    known: true,
    splits: false,
    substitution: false,
    variables: [],
    skeleton: '',
  }
  addNode(draft, node)
  const { certain: _certain, skeleton, ...word } = draft
  const braces = /\{.*(?:,|\.\.).*\}/s.test(skeleton)
  const glob = braces || /[*?]|\[.*\]/s.test(skeleton)
  // Where a home is does not matter, that it is one does: the value stays known.
  if (/^~|^\w+\+?=(?:.*:)?~/s.test(skeleton)) word.static = false
  if (!glob) return { ...word, raw: node.text, glob }
  const open = skeleton.search(/[*?{[]/)
  return {
    ...word,
    raw: node.text,
    glob,
    static: false,
    known: false,
    prefix: word.prefix.slice(0, open),
  }
}

/** A word that was never written, such as what `xargs` appends. */
export function unknownWord(text: string): Word {
  const nothing = { static: false, known: false, splits: true, glob: false, substitution: false }
  return { text, raw: text, value: '', prefix: '', variables: [], ...nothing }
}

/** A word that stands for itself. */
export function plainWord(text: string): Word {
  const all = { static: true, known: true, splits: false, glob: false, substitution: false }
  return { text, raw: text, value: text, prefix: text, variables: [], ...all }
}

function addNode(draft: Draft, node: SyntaxNode): void {
  if (node.type === 'string') addString(draft, node)
  else if (node.type === 'raw_string') addQuoted(draft, node.text.slice(1, -1))
  else if (node.type === 'ansi_c_string') addAnsi(draft, node.text)
  else if (EXPANSIONS.has(node.type)) addExpansion(draft, node, false)
  else if (node.type === 'process_substitution') addUnknown(draft, node.text, true)
  else if (node.type === 'concatenation' || node.type === 'command_name') {
    for (const child of node.children) addNode(draft, child)
  } else if (node.children.some((child) => child.named && node.type !== 'brace_expression')) {
    for (const child of node.children) addNode(draft, child)
    addUnknown(draft, '', false)
  } else addPlain(draft, node.text)
}

function append(draft: Draft, text: string, skeleton: string): void {
  draft.text += text
  draft.value += text
  if (draft.certain) draft.prefix += text
  draft.skeleton += skeleton
}

function addQuoted(draft: Draft, text: string): void {
  append(draft, text, 'x'.repeat(text.length))
}

/** Unquoted text: a backslash takes the next character as it is, or joins two lines. */
function addPlain(draft: Draft, text: string): void {
  for (const [piece] of text.matchAll(/\\[\s\S]|[^\\]/gu)) {
    if (piece === '\\\n') continue
    if (piece.startsWith('\\')) addQuoted(draft, piece.slice(1))
    else append(draft, piece, piece)
  }
}

function addString(draft: Draft, node: SyntaxNode): void {
  let at = node.start + 1
  const textBetween = (end: number) => {
    const raw = node.text.slice(at - node.start, end - node.start)
    addQuoted(
      draft,
      raw.replace(/\\([$`"\\\n])/g, (_all, one: string) => (one === '\n' ? '' : one)),
    )
  }
  for (const child of node.children) {
    if (!EXPANSIONS.has(child.type)) continue
    textBetween(child.start)
    addExpansion(draft, child, true)
    at = child.end
  }
  textBetween(node.end - 1)
}

const NUMERIC = /^\$[?#$]$|^\$\{#\w+\}$/

function addExpansion(draft: Draft, node: SyntaxNode, quoted: boolean): void {
  const name = /^\$\{?(\w+)/.exec(node.text)?.[1]
  if (name !== undefined && node.type !== 'command_substitution') draft.variables.push(name)
  const place = placeOf(node, quoted)
  if (place !== undefined) {
    addPlace(draft, node.text, place)
    return
  }
  // `${x:?}` stops the script where x is empty, so the word never is.
  if (/^\$\{\w+:\?/.test(node.text)) draft.value += '\uFFFD'
  addUnknown(draft, node.text, !quoted || /^\$\{?@|\[@\]\}$/.test(node.text))
  if (node.type === 'command_substitution') draft.substitution = true
}

function placeOf(node: SyntaxNode, quoted: boolean): string | undefined {
  if (/^\$\{?HOME\}?$/.test(node.text)) return '~'
  if (quoted && /^\$\{?PWD\}?$/.test(node.text)) return '.'
  return NUMERIC.test(node.text) || node.type === 'arithmetic_expansion' ? '0' : undefined
}

/** A value that is known well enough: where home is does not matter, nor which number it is. */
function addPlace(draft: Draft, text: string, value: string): void {
  draft.static = false
  draft.text += text
  draft.value += value
  if (draft.certain) draft.prefix += value
  draft.skeleton += 'x'.repeat(value.length)
}

function addUnknown(draft: Draft, text: string, splits: boolean): void {
  draft.static = false
  draft.known = false
  draft.certain = false
  draft.text += text
  draft.splits ||= splits
  if (text.startsWith('<(') || text.startsWith('>(')) draft.substitution = true
}

const ANSI = /\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c([\s\S])|([\s\S]))/g
const ANSI_LETTERS: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', e: '\x1b', E: '\x1b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"', '?': '?' },
}

/**
 * The value of `$'...'` as bash decodes it, or undefined where it would hold a NUL or a control or raw byte that
 * Kiki does not follow.
 */
export function decodeAnsi(text: string): string | undefined {
  let odd = false
  const decoded = text.slice(2, -1).replace(ANSI, (all, ...groups: (string | undefined)[]) => {
    const [octal, hex, short, long, control, letter] = groups
    if (letter !== undefined) return ANSI_LETTERS[letter] ?? all
    const code = octal !== undefined ? Number.parseInt(octal, 8) : Number.parseInt(hex ?? short ?? long ?? '0', 16)
    const isByte = octal !== undefined || hex !== undefined
    odd ||= control !== undefined || code === 0 || code > 0x10ffff || (isByte && code > 0x7f)
    return odd ? '' : String.fromCodePoint(code)
  })
  return odd ? undefined : decoded
}

function addAnsi(draft: Draft, text: string): void {
  const decoded = decodeAnsi(text)
  if (decoded === undefined) addUnknown(draft, text, false)
  else addQuoted(draft, decoded)
}

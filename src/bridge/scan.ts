/** What the relay needs to know of a message, without building its values. */
export interface TopLevel {
  /** Members of the outermost object that are strings, numbers, booleans or null; others are absent. */
  scalars: Map<string, unknown>
  /** Names of all members of the outermost object. */
  names: Set<string>
}

const MAX_DEPTH = 1000
const SCALAR = /^(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)$/
const [QUOTE, BACKSLASH, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY, COLON, COMMA] = [
  34, 92, 123, 125, 91, 93, 58, 44,
]

type Expect = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'next' | 'end'

/**
 * Checks that `text` is one JSON object (RFC 8259) and reports the outermost members, in one pass and without a copy of long values.
 * With `cut`, text that ends too early or is nested too deep is fine: what was seen so far is reported.
 * @returns undefined when the text is anything else, or nested deeper than 1,000 levels.
 */
export function scanObject(text: Buffer, cut = false): TopLevel | undefined {
  const found: TopLevel = { scalars: new Map(), names: new Set() }
  const open: number[] = []
  let expect: Expect = 'value'
  let name = ''
  let at = skipSpace(text, 0)
  if (text[at] !== OPEN_OBJECT) return undefined
  for (; at < text.length; at = skipSpace(text, at)) {
    const byte = text[at] ?? 0
    const inside = open.at(-1)
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (expect !== 'value' && expect !== 'first value') return undefined
      if (open.length === MAX_DEPTH) return cut ? found : undefined
      open.push(byte)
      expect = byte === OPEN_OBJECT ? 'first key' : 'first value'
      at++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      const fits = byte === CLOSE_OBJECT ? inside === OPEN_OBJECT : inside === OPEN_ARRAY
      const first: Expect = byte === CLOSE_OBJECT ? 'first key' : 'first value'
      if (!fits || (expect !== 'next' && expect !== first)) return undefined
      open.pop()
      expect = open.length === 0 ? 'end' : 'next'
      at++
    } else if (byte === COLON || byte === COMMA) {
      if (expect !== (byte === COLON ? 'colon' : 'next')) return undefined
      expect = byte === COMMA && inside === OPEN_OBJECT ? 'key' : 'value'
      at++
    } else {
      const isKey: boolean = expect === 'key' || expect === 'first key'
      if ((!isKey && expect !== 'value' && expect !== 'first value') || (isKey && byte !== QUOTE)) return undefined
      const end = byte === QUOTE ? stringEnd(text, at) : scalarEnd(text, at)
      if (end === 'cut' || (cut && end === text.length)) return cut ? found : undefined
      if (end === 'wrong') return undefined
      const value = open.length === 1 ? parseScalar(text, at, end) : undefined
      if (open.length === 1 && isKey) name = String(value)
      if (open.length === 1 && isKey) found.names.add(name)
      else if (open.length === 1) found.scalars.set(name, value)
      expect = isKey ? 'colon' : 'next'
      at = end
    }
  }
  return expect === 'end' || cut ? found : undefined
}

/** Longest scalar that is looked at; ids and method names are far shorter. */
const MAX_SCALAR_BYTES = 4096

function parseScalar(text: Buffer, start: number, end: number): unknown {
  if (end - start > MAX_SCALAR_BYTES) return undefined
  return JSON.parse(text.toString('utf8', start, end))
}

function skipSpace(text: Buffer, from: number): number {
  let at = from
  while (text[at] === 32 || text[at] === 9 || text[at] === 10 || text[at] === 13) at++
  return at
}

function scalarEnd(text: Buffer, start: number): number | 'wrong' {
  let at = start
  while (at < text.length && isScalarByte(text[at] ?? 0)) at++
  return SCALAR.test(text.toString('latin1', start, Math.min(at, start + MAX_SCALAR_BYTES))) ? at : 'wrong'
}

function isScalarByte(byte: number): boolean {
  return (
    (byte >= 48 && byte <= 57) ||
    (byte >= 97 && byte <= 122) ||
    byte === 69 ||
    byte === 43 ||
    byte === 45 ||
    byte === 46
  )
}

function stringEnd(text: Buffer, start: number): number | 'wrong' | 'cut' {
  for (let at = start + 1; at < text.length; at++) {
    const byte = text[at] ?? 0
    if (byte === QUOTE) return at + 1
    if (byte < 32) return 'wrong'
    if (byte !== BACKSLASH) continue
    const escaped = text[++at]
    if (escaped === undefined) return 'cut'
    if (escaped === 117) {
      if (at + 4 >= text.length) return 'cut'
      if (!/^[0-9a-fA-F]{4}$/.test(text.toString('latin1', at + 1, at + 5))) return 'wrong'
      at += 4
    } else if (!'"\\/bfnrt'.includes(String.fromCharCode(escaped))) return 'wrong'
  }
  return 'cut'
}

import { parse } from 'smol-toml'

/** Where a key or value stands: table names, keys and array indexes from the top of the document. */
export type KeyPath = readonly (string | number)[]

export interface StringToken {
  /** Offset of the opening quote. */
  at: number
  /** The string as written, without quotes. */
  raw: string
  path: KeyPath
}

export interface TomlScan {
  /** Offset of the first mention of a key, by {@link pathId}. */
  keys: ReadonlyMap<string, number>
  /** Every header and key of a value in the order of the text, repeated ones too. */
  mentions: readonly { at: number; path: KeyPath }[]
  /** Offset of a value, by {@link pathId}. */
  values: ReadonlyMap<string, number>
  /** Basic (double-quoted, one-line) strings among the values. */
  basicStrings: readonly StringToken[]
}

interface State {
  text: string
  at: number
  keys: Map<string, number>
  mentions: { at: number; path: KeyPath }[]
  values: Map<string, number>
  basicStrings: StringToken[]
  /** Tables begun so far in each array of tables. */
  counts: Map<string, number>
}

/** Deeper nesting is left unread; the parser refuses it. */
export const MAX_TOML_DEPTH = 64

export function pathId(path: KeyPath): string {
  return JSON.stringify(path)
}

/**
 * Finds where keys and values stand, which the parser does not tell (CF-02).
 * Judges nothing: text that is not TOML gives whatever was understood, in linear time and without an error.
 */
export function scanToml(text: string): TomlScan {
  const state: State = {
    text,
    at: 0,
    keys: new Map(),
    mentions: [],
    values: new Map(),
    basicStrings: [],
    counts: new Map(),
  }
  let table: KeyPath = []
  if (text.startsWith('\ufeff')) state.at = 1
  for (skipBlank(state); state.at < text.length; skipBlank(state)) {
    if (text[state.at] === '[') table = scanHeader(state)
    else scanPair(state, table, 0)
    skipLine(state)
  }
  return state
}

function scanHeader(state: State): KeyPath {
  const isArray = state.text.startsWith('[[', state.at)
  state.at += isArray ? 2 : 1
  skipInline(state)
  const start = state.at
  let path: KeyPath = []
  const parts = scanKey(state)
  for (const [index, part] of parts.entries()) {
    path = [...path, part]
    note(state.keys, path, start)
    const last = index === parts.length - 1
    if (last && isArray) state.counts.set(pathId(path), (state.counts.get(pathId(path)) ?? 0) + 1)
    // `[a.b]` after `[[a]]` speaks of the newest table in `a`.
    const count = last && !isArray ? undefined : state.counts.get(pathId(path))
    if (count !== undefined) path = [...path, count - 1]
  }
  note(state.keys, path, start)
  state.mentions.push({ at: start, path })
  return path
}

function scanPair(state: State, table: KeyPath, depth: number): void {
  const start = state.at
  const parts = scanKey(state)
  for (let length = 1; length <= parts.length; length++) note(state.keys, [...table, ...parts.slice(0, length)], start)
  const path = [...table, ...parts]
  state.mentions.push({ at: start, path })
  skipInline(state)
  if (parts.length === 0 || state.text[state.at] !== '=') return
  state.at += 1
  skipInline(state)
  scanValue(state, path, depth)
}

/** A dotted key, decoded; empty where there is none. */
function scanKey(state: State): string[] {
  const parts: string[] = []
  for (;;) {
    skipInline(state)
    const quoted = /["']/.test(state.text[state.at] ?? '')
    const token = quoted ? scanString(state) : match(state, /[A-Za-z0-9_-]+/y)
    if (token === '') return parts
    parts.push(quoted ? decodeKey(token) : token)
    if (parts.length > MAX_TOML_DEPTH) return parts
    skipInline(state)
    if (state.text[state.at] !== '.') return parts
    state.at += 1
  }
}

function decodeKey(token: string): string {
  try {
    return Object.keys(parse(`${token} = 0`))[0] ?? token
  } catch {
    return token // The document is not TOML here, and the parser has said so; the spelling serves as a name.
  }
}

function scanValue(state: State, path: KeyPath, depth: number): void {
  note(state.values, path, state.at)
  const start = state.at
  const first = state.text[start]
  if (depth > MAX_TOML_DEPTH) state.at = state.text.length
  else if (first === '"' || first === "'") {
    const token = scanString(state)
    if (first === '"' && !token.startsWith('"""')) {
      const end = token.length > 1 && token.endsWith('"') ? -1 : undefined
      state.basicStrings.push({ at: start, raw: token.slice(1, end), path })
    }
  } else if (first === '[') scanItems(state, ']', (index) => scanValue(state, [...path, index], depth + 1))
  else if (first === '{') scanItems(state, '}', () => scanPair(state, path, depth + 1))
  else match(state, /[^,\]}#\r\n]*/y)
}

function scanItems(state: State, close: ']' | '}', scanItem: (index: number) => void): void {
  state.at += 1
  for (let index = 0; ; index++) {
    skipBlank(state)
    if (state.at >= state.text.length) return
    const start = state.at
    if (state.text[start] === close) {
      state.at += 1
      return
    }
    scanItem(index)
    skipBlank(state)
    if (state.text[state.at] === ',' || state.at === start) state.at += 1
  }
}

/** A quoted string as written, with its quotes; one that never ends reaches to its line's or the document's end. */
function scanString(state: State): string {
  for (const quotes of ['"""', "'''"]) if (state.text.startsWith(quotes, state.at)) return scanLongString(state, quotes)
  return match(state, state.text[state.at] === '"' ? /"(?:\\[^\r\n]|[^"\\\r\n]+)*["\\]?/y : /'[^'\r\n]*'?/y)
}

function scanLongString(state: State, quotes: string): string {
  const start = state.at
  let end = state.text.indexOf(quotes, start + 3)
  // An odd number of backslashes before it makes a quote part of a basic string.
  while (end !== -1 && quotes === '"""' && isEscaped(state.text, end)) end = state.text.indexOf(quotes, end + 1)
  end = end === -1 ? state.text.length : end + 3
  // One or two more quotes belong to the string.
  for (let more = 0; more < 2 && state.text[end] === quotes[0]; more++) end += 1
  state.at = end
  return state.text.slice(start, end)
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 1
}

function note(map: Map<string, number>, path: KeyPath, at: number): void {
  const id = pathId(path)
  if (!map.has(id)) map.set(id, at)
}

function match(state: State, pattern: RegExp): string {
  pattern.lastIndex = state.at
  const found = pattern.exec(state.text)?.[0] ?? ''
  state.at += found.length
  return found
}

const skipInline = (state: State) => match(state, /[ \t]*/y)
const skipBlank = (state: State) => match(state, /(?:[ \t\r\n]+|#[^\n]*)*/y)
const skipLine = (state: State) => match(state, /[^\n]*\n?/y)

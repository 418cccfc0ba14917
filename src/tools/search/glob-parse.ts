import { KikiError } from '../../lib/errors.js'

/** One piece of a path segment. A class holds ranges of code points. */
export type Token =
  | { type: 'char'; value: string }
  | { type: 'any' }
  | { type: 'star' }
  | { type: 'class'; negated: boolean; ranges: readonly (readonly [number, number])[] }

/** One segment of a pattern; `**` stands for any number of folders. */
export type Segment = '**' | readonly Token[]

const MAX_PATTERN = 1_000
/** Braces multiply; beyond this the pattern is refused rather than slow. */
const MAX_ALTERNATIVES = 128

/**
 * The alternatives that a pattern stands for, as segments. `[slug]` also means the folder that is named so, as web
 * frameworks do, and a pattern with braces also means the name that is spelled like it: names in folders are what users mean.
 * @throws KikiError `invalid_arguments` for an empty, too long or too branched pattern.
 */
export function parseGlob(pattern: string): Segment[][] {
  if (pattern === '' || pattern.includes('\0')) {
    throw invalid('The glob pattern is empty or holds a NUL byte.', 'Give a pattern such as "**/*.ts".')
  }
  if (pattern.length > MAX_PATTERN) {
    throw invalid(`The glob pattern is longer than ${MAX_PATTERN} characters.`, 'Use a shorter pattern.')
  }
  const spelled = pattern.normalize('NFC')
  const expanded = expandBraces(spelled)
  const literal = /[{}]/.test(spelled) ? [spelled] : []
  return [...expanded, ...literal].flatMap((one) => {
    const names = splitSegments(one)
    const asGlob = names.map((name) => (name === '**' ? name : tokenize(name, true)))
    if (!one.includes('[')) return [asGlob]
    return [asGlob, names.map((name): Segment => (name === '**' ? name : tokenize(name, false)))]
  })
}

/** `a/./b//c/` is `a/b/c/**`; a name alone is looked for at any depth. */
function splitSegments(pattern: string): string[] {
  const rooted = pattern.startsWith('/') || pattern.startsWith('./')
  // A slash always parts names, also between brackets.
  const names = pattern.split('/')
  const inFolder = names.at(-1) === ''
  const kept = names.filter((name) => name !== '' && name !== '.')
  if (inFolder || kept.length === 0) kept.push('**')
  if (kept.length === 1 && !rooted && kept[0] !== '**') kept.unshift('**')
  // What is in a folder, not the folder's own name.
  if (kept.at(-1) === '**') kept.push('*')
  return kept
}

function expandBraces(pattern: string): string[] {
  const done: string[] = []
  const pending = [pattern]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const group = firstGroup(next)
    if (group === undefined) done.push(next)
    else pending.push(...group.choices.map((choice) => `${group.before}${choice}${group.after}`).reverse())
    if (done.length + pending.length > MAX_ALTERNATIVES) {
      throw invalid(`The braces stand for more than ${MAX_ALTERNATIVES} patterns.`, 'Use "*" or several calls.')
    }
  }
  return done
}

/** The first `{a,b}` whose braces close; one without a comma is an ordinary name. */
function firstGroup(pattern: string): { before: string; choices: string[]; after: string } | undefined {
  for (let open = 0; open < pattern.length; open++) {
    if (pattern[open] === '\\') open += 1
    else if (pattern[open] === '{') {
      const group = groupAt(pattern, open)
      if (group !== undefined) return group
    }
  }
  return undefined
}

function groupAt(pattern: string, open: number): { before: string; choices: string[]; after: string } | undefined {
  const cuts = [open]
  let depth = 0
  for (let at = open; at < pattern.length; at++) {
    const char = pattern[at]
    if (char === '\\') at += 1
    else if (char === '{') depth += 1
    else if (char === ',' && depth === 1) cuts.push(at)
    else if (char === '}') {
      depth -= 1
      if (depth > 0) continue
      if (cuts.length === 1) return undefined
      cuts.push(at)
      const choices = cuts.slice(1).map((end, i) => pattern.slice((cuts[i] ?? 0) + 1, end))
      return { before: pattern.slice(0, open), choices, after: pattern.slice(at + 1) }
    }
  }
  return undefined
}

function tokenize(name: string, classes: boolean): Token[] {
  const chars = Array.from(name)
  const tokens: Token[] = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ''
    const set = classes && char === '[' ? classAt(chars, at) : undefined
    if (set !== undefined) {
      tokens.push(set.token)
      at = set.end
    } else if (char === '*') {
      if (tokens.at(-1)?.type !== 'star') tokens.push({ type: 'star' })
    } else if (char === '?') tokens.push({ type: 'any' })
    else if (char === '\\' && at + 1 < chars.length) {
      at += 1
      tokens.push({ type: 'char', value: chars[at] ?? '' })
    } else tokens.push({ type: 'char', value: char })
  }
  return tokens
}

/** `[abc]`, `[a-z]`, `[!a]`, `[^a]`; undefined where the bracket does not close, which makes it an ordinary character. */
function classAt(chars: readonly string[], open: number): { token: Token; end: number } | undefined {
  const negated = chars[open + 1] === '!' || chars[open + 1] === '^'
  const first = open + (negated ? 2 : 1)
  const end = chars.indexOf(']', first + 1)
  if (end < 0) return undefined
  const ranges: [number, number][] = []
  for (let at = first; at < end; at++) {
    const from = code(chars[at])
    const isRange = chars[at + 1] === '-' && at + 2 < end
    ranges.push([from, isRange ? code(chars[at + 2]) : from])
    if (isRange) at += 2
  }
  return { token: { type: 'class', negated, ranges }, end }
}

function code(char: string | undefined): number {
  return char?.codePointAt(0) ?? -1
}

function invalid(message: string, hint: string): KikiError {
  return new KikiError('invalid_arguments', message, { hint })
}

import { parseGlob, type Segment, type Token } from './glob-parse.js'

/** A compiled pattern over paths that are relative to its base. Its time is bounded: no backtracking regular expression. */
export interface Glob {
  /** Literal folders that every match lies in, relative to where the pattern starts ('' where there are none). */
  base: string
  /** Whether a path below the base matches. With `hidden`, wildcards also match names that begin with a dot. */
  matches(path: string, hidden: boolean): boolean
  /** True where a name in the pattern begins with a dot, so that hidden files are meant. */
  namesHidden: boolean
  /** Globs over file names in ripgrep's syntax that every match passes (and maybe others); empty: no such limit. */
  nameGlobs: readonly string[]
  /** The names in the pattern that begin with a dot and are spelled out. */
  literalNames: ReadonlySet<string>
}

/**
 * Patterns as shells and editors write them: `*` and `?` within a name, `**` over folders, `[a-z]`, `{a,b}`, `\` before a
 * special character. A pattern without a slash matches names at any depth; one with a slash starts at the base folder.
 * Names are compared in Unicode normal form C, so both spellings of an accent are one.
 * @throws KikiError `invalid_arguments` for patterns that cannot be meant.
 */
export function compileGlob(pattern: string): Glob {
  const absolute = pattern.startsWith('/')
  const alternatives = parseGlob(pattern)
  const base = commonBase(alternatives)
  const rest = alternatives.map((segments) => segments.slice(base.length))
  const dotted = rest.flat().filter((segment) => segment !== '**' && startsWithDot(segment))
  return {
    base: `${absolute ? '/' : ''}${base.join('/')}`,
    matches: (path, hidden) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the ASCII range is meant
      const names = (/^[\x00-\x7f]*$/.test(path) ? path : path.normalize('NFC')).split('/')
      return rest.some((segments) => matchPath(segments, names, hidden))
    },
    namesHidden: dotted.length > 0,
    nameGlobs: nameGlobs(rest),
    literalNames: new Set(alternatives.flat().flatMap((segment) => literalOf(segment) ?? [])),
  }
}

function commonBase(alternatives: readonly Segment[][]): string[] {
  const base: string[] = []
  const first = alternatives[0] ?? []
  for (let depth = 0; depth < first.length - 1; depth++) {
    const name = literalOf(first[depth] ?? '**')
    const shared = (segments: Segment[]) => depth < segments.length - 1 && literalOf(segments[depth] ?? '**') === name
    if (name === undefined || !alternatives.every(shared)) break
    base.push(name)
  }
  return base
}

function literalOf(segment: Segment): string | undefined {
  if (segment === '**') return undefined
  const chars = segment.map((token) => (token.type === 'char' ? token.value : undefined))
  return chars.includes(undefined) ? undefined : chars.join('')
}

function startsWithDot(segment: readonly Token[]): boolean {
  const first = segment[0]
  return first?.type === 'char' && first.value === '.'
}

/** Which pattern positions are reachable, name by name: time is names × segments, whatever the pattern. */
function matchPath(segments: readonly Segment[], names: readonly string[], hidden: boolean): boolean {
  let reached = closure(segments, new Set([0]))
  for (const name of names) {
    const isHidden = name.startsWith('.') && !hidden
    const next = new Set<number>()
    for (const at of reached) {
      const segment = segments[at]
      if (segment === undefined) continue
      if (segment === '**') {
        if (!isHidden) next.add(at)
      } else if ((!isHidden || startsWithDot(segment)) && matchName(segment, name)) next.add(at + 1)
    }
    if (next.size === 0) return false
    reached = closure(segments, next)
  }
  return reached.has(segments.length)
}

/** `**` may stand for no folder at all; at the end it stands for at least one name, which `next` has then consumed. */
function closure(segments: readonly Segment[], reached: Set<number>): Set<number> {
  for (const at of reached) if (segments[at] === '**') reached.add(at + 1)
  return reached
}

/** The usual two-pointer match of one name: a failed step goes back to the last star only. */
function matchName(tokens: readonly Token[], name: string): boolean {
  let at = 0
  let pos = 0
  let starAt = -1
  let starPos = 0
  while (pos < name.length) {
    const token = tokens[at]
    const char = String.fromCodePoint(name.codePointAt(pos) ?? 0)
    if (token?.type === 'star') {
      starAt = at++
      starPos = pos
    } else if (token !== undefined && matchChar(token, char)) {
      at += 1
      pos += char.length
    } else if (starAt >= 0) {
      at = starAt + 1
      starPos += String.fromCodePoint(name.codePointAt(starPos) ?? 0).length
      pos = starPos
    } else return false
  }
  while (tokens[at]?.type === 'star') at += 1
  return at === tokens.length
}

function matchChar(token: Token, char: string): boolean {
  if (token.type === 'char') return token.value === char
  if (token.type !== 'class') return token.type === 'any'
  const code = char.codePointAt(0) ?? -1
  return token.ranges.some(([from, to]) => from <= code && code <= to) !== token.negated
}

/** Only lets ripgrep skip what cannot match; `matches` decides. */
function nameGlobs(alternatives: readonly Segment[][]): string[] {
  const globs = alternatives.map((segments) => {
    const last = segments.at(-1) ?? '**'
    return last === '**' ? '*' : last.map(looseGlob).join('').replace(/\*+/g, '*')
  })
  return globs.includes('*') ? [] : [...new Set(globs)]
}

function looseGlob(token: Token): string {
  if (token.type === 'star') return '*'
  if (token.type !== 'char') return /* a class or any: one code point */ '*'
  // Another normal form may spell it with another number of characters.
  return /[A-Za-z0-9._-]/.test(token.value) ? token.value : '*'
}

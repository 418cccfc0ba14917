/** A glob over paths, read once. Matching takes at most the length of the path times that of the pattern, whatever both are. */
export interface PathGlob {
  matches(path: string): boolean
  /** The names before the first that holds a pattern. */
  fixed: string
}

type Token = { kind: 'text'; text: string } | { kind: 'any' } | { kind: 'one' } | { kind: 'set'; set: RegExp }
type Segment = Token[] | 'deep'

/**
 * As in .gitignore: `*` and `?` stand for characters of one name, `**` as a whole name for any number of names, `[a-z]` and `[!a]`
 * for one of a set, `\` takes a sign for itself. Every other sign, `|` and braces too, is itself. Paths are without a leading `/`.
 */
export function pathGlob(pattern: string): PathGlob {
  const names = pattern.split('/')
  const segments = names.map((name): Segment => (name === '**' ? 'deep' : tokensOf(name)))
  const plain = names.findIndex((name) => /[*?[\\]/.test(name))
  return {
    matches: (path) => matchNames(segments, path.split('/')),
    fixed: names.slice(0, plain === -1 ? names.length : plain).join('/'),
  }
}

/** A pattern over one name without `/`, such as a tool's. */
export function nameGlob(pattern: string): (name: string) => boolean {
  const tokens = tokensOf(pattern)
  return (name) => matchName(tokens, name)
}

function tokensOf(name: string): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < name.length; at++) {
    const sign = name[at] as string
    const set = sign === '[' ? /^\[([!^]?)(\]?[^\]]+)\]/.exec(name.slice(at)) : null
    if (sign === '*') {
      if (tokens.at(-1)?.kind !== 'any') tokens.push({ kind: 'any' })
    } else if (sign === '?') tokens.push({ kind: 'one' })
    else if (set !== null) {
      tokens.push({ kind: 'set', set: setOf(set[1] !== '', set[2] as string) })
      at += set[0].length - 1
    } else {
      if (sign === '\\' && at + 1 < name.length) at++
      tokens.push({ kind: 'text', text: name[at] as string })
    }
  }
  return tokens
}

function setOf(negated: boolean, members: string): RegExp {
  return new RegExp(`^[${negated ? '^' : ''}${members.replace(/[\\\]^[]/g, '\\$&')}]$`, 's')
}

/** Two pointers and the last `**` to go back to: never more than names times segments. */
function matchNames(segments: readonly Segment[], names: readonly string[]): boolean {
  let segment = 0
  let name = 0
  let deep = -1
  let resume = 0
  while (name < names.length) {
    const now = segments[segment]
    if (now === 'deep') {
      deep = segment++
      resume = name
    } else if (now !== undefined && matchName(now, names[name] as string)) {
      segment++
      name++
    } else if (deep >= 0) {
      segment = deep + 1
      name = ++resume
    } else return false
  }
  // What ends in `/**` means what is in a folder, not the folder itself.
  return segment === segments.length || (segments.length === 1 && segments[0] === 'deep')
}

function matchName(tokens: readonly Token[], name: string): boolean {
  let token = 0
  let at = 0
  let any = -1
  let resume = 0
  while (at < name.length) {
    const now = tokens[token]
    if (now?.kind === 'any') {
      any = token++
      resume = at
    } else if (now !== undefined && fits(now, name[at] as string)) {
      token++
      at++
    } else if (any >= 0) {
      token = any + 1
      at = ++resume
    } else return false
  }
  while (tokens[token]?.kind === 'any') token++
  return token === tokens.length
}

function fits(token: Token, sign: string): boolean {
  if (token.kind === 'text') return token.text === sign
  return token.kind === 'one' || (token.kind === 'set' && token.set.test(sign))
}

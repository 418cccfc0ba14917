import { KikiError } from '../lib/errors.js'
import { runWhole, type Sliced } from '../lib/slices.js'
import { decode, type Encoding, encode, findLineEnd, unitSize } from './encoding.js'
import { MAX_CHANGE_BYTES } from './files.js'
import { type Folded, fold, type Tolerance, type Units } from './fold.js'

/** Steps of a loop between two places where it may pause: some milliseconds. */
const STEPS = 8192

/** Bytes of the file that a match covers: from `start` up to, not including, `end`. */
export interface Match {
  start: number
  end: number
}

export interface Matches {
  /** How the text was found; anything but `exact` is told to the caller (FI-08). */
  how: 'exact' | Tolerance
  matches: Match[]
  /** True where `matches` was cut at the limit asked for. */
  more: boolean
}

export interface MatchOptions {
  /** Overlapping places all count (to tell whether a text is unique); else left to right, each after the last. */
  overlapping: boolean
  /** Most matches that are looked for. */
  limit: number
  /** Which places count; all without it. */
  accepts?: (match: Match, how: Matches['how']) => boolean
}

/**
 * Finds literal text in a file's bytes: exactly; else with CRLF and LF alike; else also without regard to white space
 * at line ends and with typographic quotes as plain ones (FI-08). Never by likeness. A match never begins or ends
 * inside a CRLF. Text that is absent gives no matches.
 * @param from where to begin: after a byte order mark
 */
export function* findText(
  bytes: Buffer,
  text: string,
  encoding: Encoding,
  options: MatchOptions & { from: number },
): Sliced<Matches> {
  const exact = yield* findExact(bytes, encode(text, encoding), encoding, options)
  if (exact.matches.length > 0) return { how: 'exact', ...exact }
  const units: Units =
    unitSize(encoding) === 2 ? 'utf-16' : encoding === 'unknown-8bit' ? 'unknown-bytes' : 'utf-8-bytes'
  const wide = units === 'utf-16'
  const hay = wide ? decode(bytes, encoding) : bytes.toString('latin1')
  const needle = wide ? text : encode(text, encoding).toString('latin1')
  for (const how of ['line_endings', 'white_space_and_quotes'] as const) {
    const size = unitSize(encoding)
    yield
    const folded = yield* fold(hay, how, units)
    const wanted = foldNeedle(needle, how, units)
    const inBytes = ({ start, end }: Match): Match => ({ start: start * size, end: end * size })
    const { accepts } = options
    const found = yield* findFolded(
      folded,
      wanted,
      {
        ...options,
        from: options.from / size,
        ...(accepts === undefined ? {} : { accepts: (match) => accepts(inBytes(match), how) }),
      },
      how,
    )
    if (found.matches.length === 0) continue
    return { how, matches: found.matches.map(inBytes), more: found.more }
  }
  return { how: 'exact', matches: [], more: false }
}

function* findExact(
  bytes: Buffer,
  needle: Buffer,
  encoding: Encoding,
  options: MatchOptions & { from: number },
): Sliced<Omit<Matches, 'how'>> {
  const matches: Match[] = []
  const wide = unitSize(encoding) === 2
  const find = (from: number) => (wide ? bytes.indexOf(needle, from, 'utf16le') : bytes.indexOf(needle, from))
  let start = find(options.from)
  for (let step = 1; start >= 0; step++) {
    if (options.accepts !== undefined || step % STEPS === 0) yield
    const end = start + needle.length
    const whole =
      !splitsLineEnd(bytes, start, encoding) &&
      !splitsLineEnd(bytes, end, encoding) &&
      options.accepts?.({ start, end }, 'exact') !== false
    if (whole && matches.length === options.limit) return { matches, more: true }
    if (whole) matches.push({ start, end })
    start = find(whole && !options.overlapping ? end : start + unitSize(encoding))
  }
  return { matches, more: false }
}

/** Whether `at` lies between the CR and the LF of one line end. */
function splitsLineEnd(bytes: Buffer, at: number, encoding: Encoding): boolean {
  if (unitSize(encoding) === 1) return bytes[at] === 10 && bytes[at - 1] === 13
  const pair = bytes.subarray(Math.max(0, at - 2), at + 2)
  return pair.length === 4 && decode(pair, encoding) === '\r\n'
}

interface FoldedNeedle {
  text: string
  /** White space at the very end was dropped: what is found must reach to a line's end. */
  toLineEnd: boolean
}

function foldNeedle(needle: string, how: Tolerance, units: Units): FoldedNeedle {
  const { text } = runWhole(fold(needle, how, units))
  if (how === 'line_endings') return { text, toLineEnd: false }
  // Without a visible character nearly every line would match.
  return { text: /\S/.test(text) ? text : '', toLineEnd: /[ \t]$/.test(needle) }
}

function* findFolded(
  hay: Folded,
  needle: FoldedNeedle,
  options: MatchOptions & { from: number },
  how: Tolerance,
): Sliced<Omit<Matches, 'how'>> {
  const matches: Match[] = []
  if (needle.text === '') return { matches, more: false }
  let at = hay.text.indexOf(needle.text)
  for (let step = 1; at >= 0; step++) {
    if (step % STEPS === 0) yield
    const last = at + needle.text.length - 1
    const start = hay.startOf(at)
    const end = needle.toLineEnd ? hay.endWithSpaceOf(last) : hay.endOf(last)
    const fits =
      start >= options.from &&
      (!needle.toLineEnd || last + 1 === hay.text.length || hay.text[last + 1] === '\n') &&
      options.accepts?.({ start, end }, how) !== false
    if (fits && matches.length === options.limit) return { matches, more: true }
    if (fits) matches.push({ start, end })
    at = hay.text.indexOf(needle.text, fits && !options.overlapping ? last + 1 : at + 1)
  }
  return { matches, more: false }
}

/** 1-based line numbers of ascending places in the bytes. */
export function* lineNumbersOf(bytes: Buffer, places: readonly number[], encoding: Encoding): Sliced<number[]> {
  const numbers: number[] = []
  let line = 1
  let end = findLineEnd(bytes, 0, encoding)
  for (const place of places) {
    for (; end >= 0 && end < place; end = findLineEnd(bytes, end + unitSize(encoding), encoding)) {
      line++
      if (line % STEPS === 0) yield
    }
    numbers.push(line)
  }
  return numbers
}

/**
 * The bytes with each match replaced; all else stays as it is.
 * @throws KikiError `too_large` where the whole would pass 64 MiB.
 */
export function* replaceMatches(
  bytes: Buffer,
  matches: readonly Match[],
  replacementOf: (match: Match) => Buffer,
): Sliced<Buffer> {
  let total = bytes.length
  for (const match of matches) total += replacementOf(match).length - (match.end - match.start)
  if (total > MAX_CHANGE_BYTES) {
    throw new KikiError('too_large', `The edited file would have ${total} bytes; the limit is ${MAX_CHANGE_BYTES}.`, {
      hint: 'Replace less at once, or write the file with a command.',
    })
  }
  const after = Buffer.allocUnsafe(total)
  let read = 0
  let written = 0
  for (const [index, match] of matches.entries()) {
    if (index % STEPS === STEPS - 1) yield
    written += copyBytes(after, written, bytes, read, match.start)
    const replacement = replacementOf(match)
    written += copyBytes(after, written, replacement, 0, replacement.length)
    read = match.end
  }
  copyBytes(after, written, bytes, read, bytes.length)
  return after
}

/** Below this many bytes a loop is quicker than a call out of JavaScript. */
const FEW_BYTES = 64

function copyBytes(to: Buffer, at: number, from: Buffer, start: number, end: number): number {
  const length = end - start
  if (length > FEW_BYTES) from.copy(to, at, start, end)
  else for (let i = 0; i < length; i++) to[at + i] = from[start + i] ?? 0
  return length
}

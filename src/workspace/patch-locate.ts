import { KikiError } from '../lib/errors.js'
import type { Sliced } from '../lib/slices.js'
import { decode, findLineEnd, unitSize } from './encoding.js'
import { findText, lineNumbersOf, type Match } from './match.js'
import { nearestRegion } from './nearest.js'
import { anchoredStarts } from './patch-anchors.js'
import type { Hunk, PatchLine } from './patch-format.js'
import { compareLines, goToLine, type How, linesFrom, type PatchedText, type Place } from './patch-lines.js'

/** Places of one hunk that are told apart. */
const MAX_PLACES = 1000
const LISTED_LINES = 20
/** Bytes that are decoded to look for the nearest region. */
const HINT_BYTES = 1024 * 1024

/** Where the search begins: at the beginning of a line. */
export interface Cursor {
  start: number
  /** 1-based. */
  line: number
}

/**
 * Finds where a hunk's old lines stand: exactly, else with other line ends, else also with other white space at line ends and
 * typographic quotes (FI-08), always whole lines, behind the hunk before. Of several places the one nearest to the stated line,
 * or the first behind the named line.
 * @param expected line, as the hunk's number says after what the hunks before were off.
 * @throws KikiError `not_found` with the nearest region; `conflict` where several places fit and nothing decides.
 */
export function* locate(text: PatchedText, hunk: Hunk, cursor: Cursor, expected: number | undefined): Sliced<Place> {
  const olds = hunk.lines.filter(({ op }) => op !== '+')
  // A number alone is no proof of a place.
  if (olds.length === 0) throw saysNothing(text)
  if (expected !== undefined && hunk.anchors.length === 0) {
    const start = expected < cursor.line ? undefined : yield* goToLine(text, cursor, expected)
    const place = start === undefined ? undefined : placeAt(text, hunk, olds, start, 'line_endings')
    if (place !== undefined) return { ...place, line: expected }
  }
  if (olds.every((line) => line.text.trim() === '')) throw saysNothing(text)
  const found = yield* search(text, hunk, olds, cursor)
  if (found.starts.length === 0) throw notThere(text, hunk, olds, cursor)
  const { start, line } = yield* choose(text, hunk, found.starts, cursor, expected)
  const place = placeAt(text, hunk, olds, start, found.how)
  if (place === undefined) throw new Error('a place that was found fits')
  return { ...place, line }
}

type Unnumbered = Omit<Place, 'line'>

/** The hunk at this very line, if it fits. */
function placeAt(
  text: PatchedText,
  hunk: Hunk,
  olds: readonly PatchLine[],
  start: number,
  tolerance: How,
): Unnumbered | undefined {
  const lines = linesFrom(text, start, olds.length)
  if (lines === undefined || (hunk.atEnd && lines.at(-1)?.next !== text.bytes.length)) return undefined
  const how = compareLines(text, lines, olds, tolerance)
  return how && { start, lines, how }
}

/** Lines of the places are not kept: there may be many of both. */
function* search(
  text: PatchedText,
  hunk: Hunk,
  olds: readonly PatchLine[],
  cursor: Cursor,
): Sliced<{ starts: number[]; how: How }> {
  const startOf = (match: Match, how: How) => {
    const tolerant = how === 'white_space_and_quotes'
    const start = lineStartOf(text, match.start, tolerant && olds[0]?.text.trim() === '')
    if (start === undefined || start < cursor.start) return undefined
    const next = nextLineAfter(text, match.end, tolerant)
    return next === undefined || (hunk.atEnd && next !== text.bytes.length) ? undefined : start
  }
  const found = yield* findText(text.bytes, olds.map(needleOf).join(''), text.encoding, {
    from: cursor.start,
    overlapping: true,
    limit: MAX_PLACES,
    accepts: (match, how) => startOf(match, how) !== undefined,
  })
  const how = found.how === 'exact' ? 'line_endings' : found.how
  const starts: number[] = []
  if (found.more) throw tooMany(text)
  for (const match of found.matches) {
    yield
    const start = startOf(match, found.how)
    if (start !== undefined && placeAt(text, hunk, olds, start, how) !== undefined) starts.push(start)
  }
  return { starts, how }
}

/** The text of one old line; after the last nothing is looked for, because a file may end there. */
function needleOf({ text, eol }: PatchLine, index: number, olds: readonly PatchLine[]): string {
  if (index === olds.length - 1) return text
  return eol === 'crlf' ? `${text}\r\n` : `${text}\n`
}

/** Where the next line begins, if nothing of this one stands behind `at`; undefined otherwise. */
function nextLineAfter(text: PatchedText, at: number, beforeSpace: boolean): number | undefined {
  const { bytes, encoding } = text
  const step = unitSize(encoding)
  const unit = (from: number) => decode(bytes.subarray(from, from + step), encoding)
  let end = at
  while (beforeSpace && (unit(end) === ' ' || unit(end) === '\t')) end += step
  if (end >= bytes.length) return bytes.length
  const lf = unit(end) === '\r' ? end + step : end
  return unit(lf) === '\n' ? lf + step : undefined
}

/** Undefined where `at` stands within a line. */
function lineStartOf({ bytes, encoding, bom }: PatchedText, at: number, afterSpace: boolean): number | undefined {
  const step = unitSize(encoding)
  let start = at
  const before = () => decode(bytes.subarray(start - step, start), encoding)
  while (afterSpace && start > bom && (before() === ' ' || before() === '\t')) start -= step
  return start <= bom || findLineEnd(bytes, start - step, encoding) === start - step ? start : undefined
}

function* choose(
  text: PatchedText,
  hunk: Hunk,
  starts: readonly number[],
  cursor: Cursor,
  expected: number | undefined,
): Sliced<Cursor> {
  const rest = text.bytes.subarray(cursor.start)
  const numbers = yield* lineNumbersOf(
    rest,
    starts.map((start) => start - cursor.start),
    text.encoding,
  )
  let able = starts.map((start, index): Cursor => ({ start, line: cursor.line + (numbers[index] ?? 1) - 1 }))
  if (hunk.anchors.length > 0) {
    const behind = yield* anchoredStarts(text, hunk.anchors, cursor)
    const first = new Set(behind.map((start) => able.find((place) => place.start >= start)))
    able = able.filter((place) => first.has(place))
    if (able.length === 0) throw notBehind(text, hunk, starts.length)
  }
  if (expected !== undefined) {
    const offs = able.map(({ line }) => Math.abs(line - expected))
    const least = Math.min(...offs)
    able = able.filter((_, index) => offs[index] === least)
  }
  const [only, second] = able
  if (only === undefined || second !== undefined) throw ambiguous(text, able)
  return only
}

function ambiguous({ display }: PatchedText, able: readonly Cursor[]): KikiError {
  const lines = able.slice(0, LISTED_LINES).map(({ line }) => line)
  return new KikiError(
    'conflict',
    `its lines stand ${able.length} times in ${display}: lines ${lines.join(', ')}${able.length > lines.length ? ', …' : ''}`,
    { hint: 'Add lines around the change, or a @@ line that names what it stands in.', data: { lines } },
  )
}

function saysNothing({ display }: PatchedText): KikiError {
  return new KikiError('conflict', `it has no line that would tell its place in ${display}`, {
    hint: 'Add lines that stay around the change, each with a space before it.',
  })
}

function tooMany({ display }: PatchedText): KikiError {
  return new KikiError('conflict', `its lines stand more than ${MAX_PLACES} times in ${display}`, {
    hint: 'Add lines around the change.',
  })
}

function notBehind({ display }: PatchedText, { anchors }: Hunk, count: number): KikiError {
  return new KikiError(
    'not_found',
    `its lines stand in ${display} ${count === 1 ? 'once' : `${count} times`}, but not behind the line "${anchors.join('", "')}"`,
    { hint: 'Correct the @@ line, or leave it out where the lines stand once.' },
  )
}

/** With the region that is most like it, as a hint only (FI-07). */
function notThere(text: PatchedText, hunk: Hunk, olds: readonly PatchLine[], cursor: Cursor): KikiError {
  const from = text.bytes.subarray(cursor.start, cursor.start + HINT_BYTES)
  const near = nearestRegion(decode(from, text.encoding), olds.map((line) => line.text).join('\n'))
  const where = `${cursor.line > 1 ? ` from line ${cursor.line} on` : ''}${hunk.atEnd ? ' at its end' : ''}`
  const missing = `its old lines are not in ${text.display}${where}`
  const hint =
    'Read the file and copy the lines that stay and go exactly, without the line numbers; hunks stand in order.'
  if (near === undefined) return new KikiError('not_found', missing, { hint })
  const [first, last] = [near.firstLine + cursor.line - 1, near.lastLine + cursor.line - 1]
  const why = near.difference === undefined ? '' : `; ${near.difference}`
  const percent = Math.round(near.likeness * 100)
  const shown = near.shown.replace(/^(\d+)\t/gm, (_, line: string) => `${Number(line) + cursor.line - 1}\t`)
  return new KikiError(
    'not_found',
    `${missing}. The nearest is line ${first}${last === first ? '' : `-${last}`} (${percent} % alike${why}):\n${shown}\n`,
    { hint, data: { nearest: { from: first, to: last, likeness: near.likeness } } },
  )
}

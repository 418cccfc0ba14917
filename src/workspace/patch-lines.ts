import { runWhole, type Sliced } from '../lib/slices.js'
import { decode, type Encoding, encode, findLineEnd, unitSize } from './encoding.js'
import { fold, type Tolerance, type Units } from './fold.js'
import type { PatchLine } from './patch-format.js'

/** A file that hunks are applied to; its bytes are never changed. */
export interface PatchedText {
  bytes: Buffer
  encoding: Encoding
  /** Bytes of byte order mark. */
  bom: number
  /** As messages name it. */
  display: string
}

/** One line of a file: its bytes from `start` to `end`, its line end up to `next`. */
export interface LineRange {
  start: number
  end: number
  next: number
}

/** How a hunk's lines were found; anything but `exact` is told (FI-08). */
export type How = 'exact' | Tolerance

/** Where a hunk belongs: the file's lines that its old lines stand for. */
export interface Place {
  start: number
  /** 1-based number of the first of them. */
  line: number
  lines: LineRange[]
  how: How
}

/** Lines that are looked at between two places where the work may pause. */
const STEPS = 8192

/** The line that begins at `start`, which is before the end. */
export function lineAt({ bytes, encoding }: PatchedText, start: number): LineRange {
  const step = unitSize(encoding)
  const lf = findLineEnd(bytes, start, encoding)
  if (lf < 0) return { start, end: bytes.length, next: bytes.length }
  const cr = lf - step >= start && decode(bytes.subarray(lf - step, lf), encoding) === '\r'
  return { start, end: cr ? lf - step : lf, next: lf + step }
}

/** So many whole lines from `start` on; undefined where there are fewer. */
export function linesFrom(text: PatchedText, start: number, count: number): LineRange[] | undefined {
  const lines: LineRange[] = []
  for (let at = start; lines.length < count; at = lines.at(-1)?.next ?? at) {
    if (at >= text.bytes.length) return undefined
    lines.push(lineAt(text, at))
  }
  return lines
}

export function eolOfLine({ encoding }: PatchedText, line: LineRange): PatchLine['eol'] {
  if (line.next === line.end) return 'none'
  return line.next - line.end === unitSize(encoding) ? 'lf' : 'crlf'
}

/** Whether lines of a file are what a hunk says, and how far; undefined where they differ even with this tolerance. */
export function compareLines(
  text: PatchedText,
  lines: readonly LineRange[],
  olds: readonly PatchLine[],
  tolerance: How,
): How | undefined {
  let how: How = 'exact'
  for (const [index, old] of olds.entries()) {
    const line = lines[index]
    if (line === undefined) return undefined
    if (!encode(old.text, text.encoding).equals(text.bytes.subarray(line.start, line.end))) {
      if (tolerance !== 'white_space_and_quotes' || !isAlike(text, line, old.text)) return undefined
      how = 'white_space_and_quotes'
    } else if (how === 'exact' && eolOfLine(text, line) !== old.eol) how = 'line_endings'
  }
  return how === 'line_endings' && tolerance === 'exact' ? undefined : how
}

function isAlike({ bytes, encoding }: PatchedText, line: LineRange, old: string): boolean {
  const slice = bytes.subarray(line.start, line.end)
  const units: Units =
    unitSize(encoding) === 2 ? 'utf-16' : encoding === 'unknown-8bit' ? 'unknown-bytes' : 'utf-8-bytes'
  const folded = (value: string) => runWhole(fold(value, 'white_space_and_quotes', units)).text
  if (units === 'utf-16') return folded(decode(slice, encoding)) === folded(old)
  return folded(slice.toString('latin1')) === folded(encode(old, encoding).toString('latin1'))
}

/** Goes on from the beginning of a line to that of another; undefined past the end. */
export function* goToLine(
  text: PatchedText,
  from: { start: number; line: number },
  wanted: number,
): Sliced<number | undefined> {
  let at = from.start
  for (let line = from.line; line < wanted; line++) {
    if (at >= text.bytes.length) return undefined
    at = lineAt(text, at).next
    if (line % STEPS === 0) yield
  }
  return at < text.bytes.length ? at : undefined
}

import { KikiError } from '../lib/errors.js'
import type { Sliced } from '../lib/slices.js'
import { visible } from '../lib/visible.js'
import { eolOfBytes } from './edit-text.js'
import { cutText, decode, detect, type Eol, encode, findLineEnd, isAscii, unitSize } from './encoding.js'
import { MAX_CHANGE_BYTES } from './files.js'
import { lineNumbersOf } from './match.js'
import type { Hunk, PatchLine } from './patch-format.js'
import { eolOfLine, type How, lineAt, type PatchedText, type Place } from './patch-lines.js'
import { type Cursor, locate } from './patch-locate.js'
import { tooLarge } from './write.js'

/** What is told of one applied hunk. */
export interface AppliedHunk {
  /** 1-based line in the text before where it was found. */
  line: number
  /** Lines that it stood lower than its header says; 0 where that names none. */
  off: number
  how: How
  miscounted: boolean
}

/** Hunks of one file. */
const MAX_HUNKS = 10_000

/**
 * Applies the hunks of one file in order; all that they do not replace stays byte for byte: line ends, byte order mark, encoding,
 * final newline (FI-07, FI-10). New lines get the line ends of the file, or, where the hunk's own lines are exactly the file's,
 * those of the patch.
 * @param display the file's name in messages
 * @throws KikiError as {@link locate}, with file and hunk named; `invalid_arguments` for binary files and what cannot be written
 * in the file's encoding, `too_large` beyond 64 MiB or 10,000 hunks
 */
export function* applyHunks(
  bytes: Buffer,
  hunks: readonly Hunk[],
  display: string,
): Sliced<{ bytes: Buffer; applied: AppliedHunk[] }> {
  const text = textOf(bytes, display)
  if (hunks.length > MAX_HUNKS) throw tooManyHunks(display)
  const parts: Buffer[] = []
  const applied: AppliedHunk[] = []
  let cursor: Cursor = { start: text.bom, line: 1 }
  let copied = 0
  let off = 0
  // Asked for by most hunks of a file or by none, and the same for all.
  let style: Eol | undefined
  for (const [index, given] of hunks.entries()) {
    yield
    try {
      requireEncodable(given, text)
      const { hunk, place } = yield* placeOf(text, given, cursor, off)
      if (hunk.oldStart !== undefined) off = place.line - hunk.oldStart
      const literal = place.how === 'exact' && given.lines.some(({ op }) => op !== '+')
      if (!literal) style ??= yield* eolOfBytes(bytes, text.encoding)
      const eol = literal || style === undefined ? 'none' : style
      parts.push(bytes.subarray(copied, place.start), ...linesAfter(text, hunk, place, eol))
      copied = place.lines.at(-1)?.next ?? place.start
      cursor = { start: copied, line: place.line + place.lines.length }
      applied.push({ line: place.line, off, how: place.how, miscounted: hunk.miscounted })
    } catch (error) {
      throw error instanceof KikiError ? named(error, display, given, index) : error
    }
  }
  const after = Buffer.concat([...parts, bytes.subarray(copied)])
  if (after.length > MAX_CHANGE_BYTES) throw tooLarge(display, BigInt(after.length), MAX_CHANGE_BYTES)
  return { bytes: after, applied }
}

/** The content of a new file, or that of a deleted one, as its hunk says; line ends as in the patch. */
export function contentOf(hunk: Hunk | undefined): Buffer {
  const lines = hunk?.lines ?? []
  return Buffer.from(lines.map(({ text, eol }) => text + EOL[eol]).join(''))
}

const EOL = { lf: '\n', crlf: '\r\n', none: '' } as const

function textOf(bytes: Buffer, display: string): PatchedText {
  const file = detect(bytes, true)
  if (file.text) return { bytes, encoding: file.encoding, bom: file.bom, display }
  throw new KikiError(
    'invalid_arguments',
    `${display} is a binary file (${file.type}) and cannot be patched as text.`,
    {
      hint: 'Leave it out of the patch; Write can replace the whole file.',
    },
  )
}

function requireEncodable({ lines }: Hunk, { encoding, display }: PatchedText): void {
  if (encoding !== 'unknown-8bit' || lines.every(({ text }) => isAscii(text))) return
  throw new KikiError(
    'invalid_arguments',
    `${display} is in some 8-bit encoding that it does not name, so only ASCII lines can be patched in it`,
    { hint: 'Use only ASCII lines in the hunk, or convert the file with a command (iconv) first.' },
  )
}

/** Lines that are only added need no line that tells their place in an empty file and, where the patch says so, at the end. */
function* placeOf(text: PatchedText, hunk: Hunk, cursor: Cursor, off: number): Sliced<{ hunk: Hunk; place: Place }> {
  const { bytes, bom, encoding } = text
  const onlyAdds = hunk.lines.every(({ op }) => op === '+')
  if (onlyAdds && bytes.length === bom) return { hunk, place: { start: bom, line: 1, lines: [], how: 'exact' } }
  if (!onlyAdds || !hunk.atEnd || hunk.oldStart !== undefined) {
    const expected = hunk.oldStart === undefined ? undefined : Math.max(1, hunk.oldStart + off)
    return { hunk, place: yield* locate(text, hunk, cursor, expected) }
  }
  const start = lastLineStart(text)
  if (start < cursor.start) throw behindItself()
  const last = lineAt(text, start)
  const [line = 1] = yield* lineNumbersOf(bytes, [start], encoding)
  const stays: PatchLine = {
    op: ' ',
    text: decode(bytes.subarray(last.start, last.end), encoding),
    // Nothing is said about whether a line end follows the last line, so that stays as it is.
    eol: 'lf',
  }
  return { hunk: { ...hunk, lines: [stays, ...hunk.lines] }, place: { start, line, lines: [last], how: 'exact' } }
}

function lastLineStart({ bytes, bom, encoding }: PatchedText): number {
  const step = unitSize(encoding)
  let start = bytes.length - ((bytes.length - bom) % step) - step
  while (start > bom && findLineEnd(bytes.subarray(0, start), start - step, encoding) < 0) start -= step
  return Math.max(start, bom)
}

function behindItself(): KikiError {
  return new KikiError('conflict', 'the hunk before it changes the end of the file too', {
    hint: 'Put both into one hunk.',
  })
}

interface NewLine {
  content: Buffer
  eol: Buffer
}

/** What stands in the place of a hunk's old lines. @param style line ends of the file; `none` to take those of the patch. */
function linesAfter(text: PatchedText, hunk: Hunk, place: Place, style: Eol): Buffer[] {
  const { bytes, encoding } = text
  const encoded = { lf: encode('\n', encoding), crlf: encode('\r\n', encoding), none: Buffer.alloc(0) }
  let old = 0
  const eolFor = (line: PatchLine) => {
    if (style === 'lf' || style === 'crlf') return encoded[style]
    const beside = place.lines[Math.max(0, old - 1)]
    const kind = style === 'mixed' && beside !== undefined ? eolOfLine(text, beside) : line.eol
    return encoded[kind === 'none' ? 'lf' : kind]
  }
  const fresh: NewLine[] = []
  for (const line of hunk.lines) {
    const range = place.lines[old]
    if (line.op === '+') fresh.push({ content: encode(line.text, encoding), eol: eolFor(line) })
    else if (range !== undefined) {
      const eol = bytes.subarray(range.end, range.next)
      if (line.op === ' ') fresh.push({ content: bytes.subarray(range.start, range.end), eol })
      old++
    }
  }
  const atEnd = (place.lines.at(-1)?.next ?? bytes.length) === bytes.length
  if (atEnd)
    endLines(fresh, endsWithLine(text, hunk, place), eolFor(hunk.lines.at(-1) ?? { op: '+', text: '', eol: 'lf' }))
  return fresh.flatMap(({ content, eol }) => [content, eol])
}

/** At the end of a file: whether a line end follows the last line. Where the patch does not change that, the file's state is kept. */
function endsWithLine(text: PatchedText, { lines }: Hunk, place: Place): boolean {
  const lastOld = lines.findLast(({ op }) => op !== '+')
  const lastNew = lines.findLast(({ op }) => op !== '-')
  const range = place.lines.at(-1)
  if (lastOld === undefined || range === undefined) return lastNew?.eol !== 'none'
  if ((lastOld.eol === 'none') === (lastNew?.eol === 'none')) return eolOfLine(text, range) !== 'none'
  return lastNew?.eol !== 'none'
}

function endLines(fresh: NewLine[], ends: boolean, eol: Buffer): void {
  for (const [index, line] of fresh.entries()) {
    if (index === fresh.length - 1 && !ends) line.eol = Buffer.alloc(0)
    else if (line.eol.length === 0) line.eol = eol
  }
}

function named(error: KikiError, display: string, hunk: Hunk, index: number): KikiError {
  const header = hunk.header === '' ? `line ${hunk.at} of the patch` : visible(cutText(hunk.header, 80))
  const end = error.message.endsWith('\n') ? '' : error.message.endsWith('.') ? ' ' : '. '
  return new KikiError(
    error.code,
    `${display}, hunk ${index + 1} (${header}): ${error.message}${end}Nothing was changed.`,
    {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      data: { ...error.data, path: display, hunk: index + 1, patch_line: hunk.at },
      cause: error,
    },
  )
}

function tooManyHunks(display: string): KikiError {
  return new KikiError('too_large', `${display}: more than ${MAX_HUNKS} hunks for one file. Nothing was changed.`, {
    hint: 'Send the patch in several parts.',
  })
}

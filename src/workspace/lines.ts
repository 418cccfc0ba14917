import { isUtf8 } from 'node:buffer'
import { type BigIntStats, fstatSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import {
  cutText,
  decode,
  detect,
  type Encoding,
  type Eol,
  eolOf,
  findLineEnd,
  SNIFF_BYTES,
  unitSize,
  wholeCharacters,
} from './encoding.js'
import {
  type ByteSource,
  byteSource,
  extendIndex,
  keyOf,
  type LineIndex,
  type LineIndexes,
  lineEnds,
  newLineIndex,
  type TextFile,
  totalLines,
  WHOLE_FILE_BYTES,
  WINDOW_BYTES,
} from './line-index.js'

/** Characters (UTF-16 units) of one line that are shown (FI-02). */
export const MAX_LINE_CHARS = 2000
/** Most characters of one page, whatever `limit` says, so that no page needs more memory than this. */
export const MAX_PAGE_CHARS = 16 * 1024 * 1024

const LINES_PER_TURN = 5000

export interface PageRequest {
  /** 1-based; negative counts from the end, -1 being the last line; never 0. */
  offset: number
  maxLines: number
  /** Characters of the page with its line numbers; one line is always given. */
  maxChars: number
}

export interface PageLine {
  /** 1-based; counted from the end (-1 is the last) where the file is too large to be read from its start. */
  number: number
  /** The line without its line end, clamped to {@link MAX_LINE_CHARS}. */
  text: string
  /** Characters left out at the line's end. */
  omitted: number
}

export type Page =
  | { kind: 'binary'; type: string; size: number }
  | {
      kind: 'text'
      size: number
      lines: PageLine[]
      encoding: Encoding
      /** Of the whole file up to 16 MB, else of the page. */
      eol: Eol
      /** The next line, if there is one. */
      next?: number
      /** Known where the file was read to its end. */
      totalLines?: number
      /** Of the raw bytes; for files up to 16 MB that did not change meanwhile. */
      sha256?: string
      /** The file changed while it was read, so lines may not belong together. */
      changed: boolean
    }

/**
 * Reads some lines of an open file by seeking (FI-01, FI-02). Memory is bounded by the page and one window, whatever
 * the size of the file; a file over 16 MB is looked through only as far as the page needs.
 * @throws KikiError `cancelled` once `signal` is aborted
 */
export async function readPage(
  file: { fd: number; stat: BigIntStats },
  request: PageRequest,
  options: { indexes: LineIndexes; signal: AbortSignal },
): Promise<Page> {
  const size = Number(file.stat.size)
  const source = byteSource(file.fd, size, options.signal)
  let index = options.indexes.take(file.stat)
  if (index === undefined) {
    const head = await source.at(0)
    const found = detect(head.subarray(0, SNIFF_BYTES), head.length >= size && size <= SNIFF_BYTES)
    if (!found.text) return { kind: 'binary', type: found.type, size }
    index = newLineIndex(found, size)
  }
  const whole = size <= WHOLE_FILE_BYTES
  while (whole && !index.done) await extendIndex(index, source)
  const fromEnd = !whole && request.offset < 0
  const begin = fromEnd
    ? await findFromEnd(source, index.file, -request.offset)
    : await findStart(source, index, request.offset)
  const page = begin ? await collect(source, index.file, begin, request) : { lines: [], ends: { lf: 0, crlf: 0 } }
  const changed = keyOf(fstatSync(file.fd, { bigint: true })) !== keyOf(file.stat)
  if (!changed) options.indexes.keep(file.stat, index)
  return {
    kind: 'text',
    size,
    lines: page.lines,
    encoding: page.invalid && index.file.encoding === 'utf-8' ? 'unknown-8bit' : index.file.encoding,
    eol: eolOf(whole ? index.ends : page.ends),
    ...(page.next === undefined ? {} : { next: page.next }),
    ...(index.done && !changed ? { totalLines: totalLines(index) } : {}),
    ...(index.sha256 !== undefined && !changed ? { sha256: index.sha256 } : {}),
    changed,
  }
}

type Start = { position: number; number: number }

async function findStart(source: ByteSource, index: LineIndex, offset: number): Promise<Start | undefined> {
  const number = offset > 0 ? offset : Math.max(1, totalLines(index) + 1 + offset)
  while (!index.done && lineEnds(index) < number - 1) await extendIndex(index, source)
  if (index.done && number > totalLines(index)) return undefined
  const position = await positionOfLine(source, index, number)
  return position === undefined || position >= source.size ? undefined : { position, number }
}

/** Where line `number` begins, from the nearest mark before it. */
async function positionOfLine(source: ByteSource, index: LineIndex, number: number): Promise<number | undefined> {
  if (number === 1) return index.file.bom
  const mark = lastMarkBefore(index.marks, number - 1)
  let { position, ends } = mark
  for (;;) {
    const window = await source.at(position)
    if (window.length === 0) return undefined
    const bytes = window.subarray(0, wholeUnits(window, index.file))
    let at = findLineEnd(bytes, 0, index.file.encoding)
    while (at >= 0) {
      at += unitSize(index.file.encoding)
      ends++
      if (ends === number - 1) return position + at
      at = findLineEnd(bytes, at, index.file.encoding)
    }
    if (bytes.length === 0) return undefined
    position += bytes.length
  }
}

function lastMarkBefore(marks: LineIndex['marks'], ends: number): LineIndex['marks'][number] {
  let low = 0
  let high = marks.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((marks[middle]?.ends ?? 0) < ends) low = middle
    else high = middle
  }
  return marks[low] ?? { position: 0, ends: 0 }
}

/** Looks backwards for the `count`-th line from the end; the first line, with its true number, where there are fewer. */
async function findFromEnd(source: ByteSource, file: TextFile, count: number): Promise<Start> {
  const step = unitSize(file.encoding)
  // The unit at the very end is left out: a last line end does not begin another line.
  let end = source.size - ((source.size - file.bom) % step) - step
  let found = 0
  while (end > file.bom) {
    const begin = Math.max(file.bom, end - WINDOW_BYTES)
    const bytes = (await source.at(begin, end - begin)).subarray(0, end - begin)
    for (
      let at = lastLineEnd(bytes, bytes.length, file.encoding);
      at >= 0;
      at = lastLineEnd(bytes, at, file.encoding)
    ) {
      if (++found === count) return { position: begin + at + step, number: -count }
    }
    end = begin
  }
  return { position: file.bom, number: 1 }
}

/** Where the last LF before `before` stands, or -1. */
function lastLineEnd(bytes: Buffer, before: number, encoding: Encoding): number {
  const step = unitSize(encoding)
  if (before < step) return -1
  if (step === 1) return bytes.lastIndexOf(10, before - 1)
  return bytes.lastIndexOf(Buffer.from(encoding === 'utf-16le' ? [10, 0] : [0, 10]), before - step, 'utf16le')
}

interface Collected {
  lines: PageLine[]
  ends: { lf: number; crlf: number }
  next?: number
  invalid?: boolean
}

async function collect(source: ByteSource, file: TextFile, start: Start, request: PageRequest): Promise<Collected> {
  const page: Collected = { lines: [], ends: { lf: 0, crlf: 0 } }
  let { position, number } = start
  let room = Math.min(request.maxChars, MAX_PAGE_CHARS)
  const reader = lineReader(source, file)
  while (position < source.size) {
    // Lines of one window are found without waiting for anything: a million of them would block the host.
    if (page.lines.length % LINES_PER_TURN === LINES_PER_TURN - 1) await setImmediate()
    const more = page.lines.length < request.maxLines
    const line = more ? (reader.held(position) ?? (await reader.read(position))) : undefined
    const cost = line ? line.text.length + String(number).length + 2 : 0
    if (line === undefined || (cost > room && page.lines.length > 0)) {
      page.next = number
      break
    }
    room -= cost
    page.lines.push({ number, text: line.text, omitted: line.omitted })
    if (line.end !== 'none') page.ends[line.end]++
    if (line.invalid) page.invalid = true
    position = line.next
    number++
  }
  return page
}

interface FoundLine {
  text: string
  omitted: number
  end: 'lf' | 'crlf' | 'none'
  /** Where the next line begins. */
  next: number
  /** Some bytes are no UTF-8. */
  invalid: boolean
}

/** Lines one after the other, most of them without waiting: `held` gives what the window has whole, `read` anything. */
function lineReader(source: ByteSource, file: TextFile) {
  let window: Buffer | undefined
  let start = 0
  const held = (position: number) => window && lineWithin(window, start, file, position)
  return {
    held,
    async read(position: number): Promise<FoundLine> {
      window = await source.at(position)
      start = position
      const line = held(position)
      if (line !== undefined) return line
      // It moves the window.
      window = undefined
      return nextLine(source, file, position)
    },
  }
}

/** The line from `position` on, if the window that begins at `start` holds it with its line end. */
function lineWithin(window: Buffer, start: number, file: TextFile, position: number): FoundLine | undefined {
  const from = position - start
  const at = from < window.length ? findLineEnd(window, from, file.encoding) : -1
  if (at < 0) return undefined
  const bytes = window.subarray(from, at)
  const whole = decode(bytes, file.encoding)
  const cr = whole.endsWith('\r')
  const length = cr ? whole.length - 1 : whole.length
  const text = cutText(cr ? whole.slice(0, length) : whole, MAX_LINE_CHARS)
  return {
    text,
    omitted: length - text.length,
    end: cr ? 'crlf' : 'lf',
    next: start + at + unitSize(file.encoding),
    invalid: unitSize(file.encoding) === 1 && whole.includes('\ufffd') && !isUtf8(bytes),
  }
}

/** One line, of which no more than a window is held, however long it is. */
async function nextLine(source: ByteSource, file: TextFile, from: number): Promise<FoundLine> {
  const line: FoundLine = { text: '', omitted: 0, end: 'none', next: from, invalid: false }
  let length = 0
  let cr = false
  while (line.end === 'none' && line.next < source.size) {
    const window = await source.at(line.next)
    if (window.length === 0) break
    const at = findLineEnd(window, 0, file.encoding)
    const last = line.next + window.length >= source.size
    const bytes = at >= 0 ? window.subarray(0, at) : last ? window : window.subarray(0, wholeUnits(window, file))
    const piece = decode(bytes, file.encoding)
    if (piece.includes('\ufffd') && unitSize(file.encoding) === 1 && !isUtf8(bytes)) line.invalid = true
    if (line.text.length <= MAX_LINE_CHARS) line.text += piece.slice(0, MAX_LINE_CHARS + 2)
    length += piece.length
    if (piece.length > 0) cr = piece.endsWith('\r')
    line.next += bytes.length
    if (at < 0) continue
    line.next += unitSize(file.encoding)
    line.end = cr ? 'crlf' : 'lf'
  }
  if (line.end === 'crlf') length--
  line.text = cutText(line.text.slice(0, length), MAX_LINE_CHARS)
  line.omitted = length - line.text.length
  return line
}

function wholeUnits(window: Buffer, file: TextFile): number {
  return wholeCharacters(window, file.encoding) || window.length
}

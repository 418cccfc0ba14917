import { structuredPatch } from 'diff'
import { cutText } from './encoding.js'

export interface DiffOptions {
  /** As shown in the header. */
  path: string
  /** Characters of the whole diff; default 4,000. */
  maxChars?: number
}

const MAX_CHARS = 4000
const CONTEXT = 3
/** Characters of one line that are shown. */
const LINE_CHARS = 500
/** An unchanged piece of a line beside a change is cut to its nearest 120 bytes where it is longer than 200. */
const BESIDE = { most: 200, kept: 120 }
/** Bytes on each side that are compared line by line; a change that reaches further is cut. */
const COMPARED_BYTES = 128 * 1024
const COMPARED_MS = 150

/**
 * A unified diff, bounded in size and time: what both sides share at their beginning and end is set aside first, and
 * long lines, long changes and long diffs are cut with a marker. Empty where nothing differs. For reading: a diff that
 * was cut cannot be applied.
 */
export function unifiedDiff(before: string, after: string, options: DiffOptions): string {
  return unifiedDiffOfBytes(Buffer.from(before), Buffer.from(after), options)
}

/** {@link unifiedDiff} of UTF-8 (or another encoding that keeps ASCII), decoding only what is shown. */
export function unifiedDiffOfBytes(before: Buffer, after: Buffer, options: DiffOptions): string {
  if (before.equals(after)) return ''
  const change = changedPart(before, after)
  const lineStart = change.start === 0 ? 0 : before.lastIndexOf(10, change.start - 1) + 1
  const from = linesBack(before, lineStart, CONTEXT)
  const head = cutLines(before, from, lineStart) + cutHead(before, lineStart, change.start)
  const tail = cutLines(before, change.beforeEnd, linesOn(before, change.beforeEnd, CONTEXT + 1))
  const old = compared(before, change.start, change.beforeEnd)
  const fresh = compared(after, change.start, change.afterEnd)
  const cut = old.cut || fresh.cut
  const rest = cut ? '' : tail
  const body = showHunks(head + old.text + rest, head + fresh.text + rest, countLines(before, from), cut)
  return clampDiff([`--- ${options.path}`, `+++ ${options.path}`, ...body], options.maxChars ?? MAX_CHARS)
}

/** The bytes that differ, grown to whole UTF-8 characters. Equal blocks are compared by memory, then byte by byte. */
function changedPart(before: Buffer, after: Buffer): { start: number; beforeEnd: number; afterEnd: number } {
  const most = Math.min(before.length, after.length)
  const block = 64 * 1024
  let start = 0
  while (start < most) {
    const next = Math.min(start + block, most)
    if (before.compare(after, start, next, start, next) !== 0) break
    start = next
  }
  while (start < most && before[start] === after[start]) start++
  while (start > 0 && (isInside(before, start) || isInside(after, start))) start--
  const [b, a] = [before.length, after.length]
  const room = most - start
  let same = 0
  while (same < room) {
    const next = Math.min(same + block, room)
    if (before.compare(after, a - next, a - same, b - next, b - same) !== 0) break
    same = next
  }
  while (same < room && before[b - 1 - same] === after[a - 1 - same]) same++
  while (same > 0 && isInside(before, b - same)) same--
  return { start, beforeEnd: b - same, afterEnd: a - same }
}

/** Whether `at` stands on a byte that continues a UTF-8 character. */
function isInside(bytes: Buffer, at: number): boolean {
  return ((bytes[at] ?? 0) & 0xc0) === 0x80
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at
  while (start > 0 && at - start < 3 && isInside(bytes, start)) start--
  return start
}

/** Where the `count`-th line before `lineStart` begins. */
function linesBack(bytes: Buffer, lineStart: number, count: number): number {
  let at = lineStart
  for (let i = 0; i < count && at > 0; i++) at = at < 2 ? 0 : bytes.lastIndexOf(10, at - 2) + 1
  return at
}

/** Where the `count`-th line after `from` begins, or the end. */
function linesOn(bytes: Buffer, from: number, count: number): number {
  let at = from
  for (let i = 0; i < count && at < bytes.length; i++) {
    const end = bytes.indexOf(10, at)
    at = end < 0 ? bytes.length : end + 1
  }
  return at
}

function countLines(bytes: Buffer, end: number): number {
  let count = 0
  // Where line ends are dense, a search for each costs more than a look at every byte.
  for (let at = 0; at < end; at++) if (bytes[at] === 10) count++
  return count
}

/** Unchanged lines, of long ones only the beginning. */
function cutLines(bytes: Buffer, from: number, to: number): string {
  let text = ''
  for (let at = from; at < to; ) {
    const next = linesOn(bytes, at, 1)
    if (next - at <= BESIDE.most) text += bytes.toString('utf8', at, next)
    else {
      const end = bytes[next - 1] !== 10 ? '' : bytes[next - 2] === 13 ? '\r\n' : '\n'
      const kept = characterStart(bytes, at + BESIDE.kept)
      text += `${bytes.toString('utf8', at, kept)}…[${next - kept - end.length} more bytes]${end}`
    }
    at = next
  }
  return text
}

/** The unchanged beginning of a changed line, of a long one only the end. */
function cutHead(bytes: Buffer, lineStart: number, end: number): string {
  if (end - lineStart <= BESIDE.most) return bytes.toString('utf8', lineStart, end)
  const kept = characterStart(bytes, end - BESIDE.kept)
  return `[${kept - lineStart} bytes]…${bytes.toString('utf8', kept, end)}`
}

/** One side of the change, cut at a line end where it is long. */
function compared(bytes: Buffer, start: number, end: number): { text: string; cut: boolean } {
  if (end - start <= COMPARED_BYTES) return { text: bytes.toString('utf8', start, end), cut: false }
  const most = start + COMPARED_BYTES
  const lastLine = bytes.lastIndexOf(10, most - 1) + 1
  return { text: bytes.toString('utf8', start, lastLine > start ? lastLine : characterStart(bytes, most)), cut: true }
}

function showHunks(before: string, after: string, linesAhead: number, cut: boolean): string[] {
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT, timeout: COMPARED_MS })
  if (patch === undefined) {
    const count = (text: string) => text.split('\n').length - 1
    return [
      `[too many changes to compare: ${count(before)} lines became ${count(after)} from line ${linesAhead + 1} on]`,
    ]
  }
  const { hunks } = patch
  // Where a side was cut, its last lines only seem to differ.
  if (cut && hunks.length > 1) hunks.pop()
  const crlf = !/(?<!\r)\n/.test(before) && !/(?<!\r)\n/.test(after)
  const shown = hunks.flatMap((hunk) => [
    `@@ -${range(hunk.oldStart + linesAhead, hunk.oldLines)} +${range(hunk.newStart + linesAhead, hunk.newLines)} @@`,
    ...hunk.lines.filter((line) => !(cut && line.startsWith('\\'))).map((line) => showLine(line, crlf)),
  ])
  return cut ? [...shown, '[the change is longer than is shown here]'] : shown
}

function range(start: number, lines: number): string {
  return lines === 1 ? `${start}` : `${lines === 0 ? start - 1 : start},${lines}`
}

/** In a file of one style a CR says nothing; where styles differ it is shown. */
function showLine(line: string, crlf: boolean): string {
  const ending = line.endsWith('\r') ? (crlf ? '' : '␍') : ''
  const text = line.endsWith('\r') ? line.slice(0, -1) : line
  if (text.length <= LINE_CHARS) return text + ending
  const kept = cutText(text, LINE_CHARS)
  return `${kept}…[${text.length - kept.length} more characters]${ending}`
}

function clampDiff(lines: readonly string[], maxChars: number): string {
  let length = 0
  for (const [index, line] of lines.entries()) {
    length += line.length + 1
    if (length > maxChars && index > 2) {
      return [...lines.slice(0, index), `[diff cut: ${lines.length - index} more lines]`].join('\n')
    }
  }
  return lines.join('\n')
}

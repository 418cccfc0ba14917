import { type Hunk, type PatchLine, patchLine, patchProblem, type Reader } from './patch-format.js'
import { isNamePair } from './patch-parse-git.js'

const NUMBERS = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/
/** What may follow a hunk whose header counts right. */
const NEXT = /^(@@|diff |Index: |-- ?\r?$|Only in |Binary files |commit |From |=+$|\s*$)/

/**
 * Reads one hunk of a unified diff. Its header's counts say where it ends; where they do not fit what is there, its lines
 * themselves do, up to the next header.
 * @throws KikiError `invalid_arguments` with the line.
 */
export function readHunk(reader: Reader): Hunk {
  const at = reader.at + 1
  const header = (reader.lines[reader.at] ?? '').trimEnd()
  const numbers = NUMBERS.exec(header)
  reader.at++
  const counts = numbers && { old: Number(numbers[2] ?? 1), fresh: Number(numbers[4] ?? 1) }
  const counted = counts === null ? undefined : readCounted(reader, counts)
  const { lines, next } = counted ?? readToHeader(reader)
  reader.at = next
  if (lines.length === 0) throw patchProblem(at, 'the hunk is empty')
  requireEnds(lines, at)
  const atEnd = lines.some(({ eol }) => eol === 'none')
  const base = { at, header, lines, anchors: [], atEnd, miscounted: counts !== null && counted === undefined }
  if (numbers === null) return base
  // A hunk without old lines names the line before it.
  return { ...base, oldStart: Number(numbers[1]) + (counts?.old === 0 ? 1 : 0) }
}

interface Body {
  lines: PatchLine[]
  /** Line after it, from 0. */
  next: number
}

/** Undefined where another number of lines is there than the header says. */
function readCounted(reader: Reader, counts: { old: number; fresh: number }): Body | undefined {
  const lines: PatchLine[] = []
  let { old, fresh } = counts
  let at = reader.at
  for (; old > 0 || fresh > 0; at++) {
    const line = reader.lines[at]
    if (line === undefined) return undefined
    if (noteNoEnd(lines, line)) continue
    const read = readLine(line)
    if (read === undefined) return undefined
    if (read.op !== '+') old--
    if (read.op !== '-') fresh--
    if (old < 0 || fresh < 0) return undefined
    lines.push(read)
  }
  if (noteNoEnd(lines, reader.lines[at])) at++
  const after = reader.lines[at]
  if (after !== undefined && !NEXT.test(after) && !isNamePair(reader.lines, at)) return undefined
  return { lines, next: at }
}

/** All lines up to what is clearly the next header or the end. */
function readToHeader(reader: Reader): Body {
  const lines: PatchLine[] = []
  let at = reader.at
  for (let line = reader.lines[at]; line !== undefined; line = reader.lines[++at]) {
    if (line.startsWith('@@') || line.startsWith('diff --git ') || isNamePair(reader.lines, at)) break
    if (noteNoEnd(lines, line)) continue
    const read = readLine(line)
    if (read === undefined) break
    lines.push(read)
  }
  // Empty lines at its end are more likely to stand between two parts of the patch.
  while (at > reader.at && reader.lines[at - 1]?.trim() === '' && reader.lines[at - 1]?.startsWith(' ') === false) {
    lines.pop()
    at--
  }
  return { lines, next: at }
}

function readLine(line: string): PatchLine | undefined {
  if (line === '' || line === '\r') return patchLine(' ', line)
  const op = line[0]
  return op === ' ' || op === '-' || op === '+' ? patchLine(op, line.slice(1)) : undefined
}

/** `\ No newline at end of file` is about the line before it. */
function noteNoEnd(lines: readonly PatchLine[], line: string | undefined): boolean {
  const last = lines.at(-1)
  if (line?.startsWith('\\') !== true || last === undefined) return false
  // Without an LF a CR is no line end, but a part of the line.
  if (last.eol === 'crlf') last.text += '\r'
  last.eol = 'none'
  return true
}

/** Only the last line of a side can be without a line end. */
function requireEnds(lines: readonly PatchLine[], at: number): void {
  for (const gone of ['+', '-'] as const) {
    const side = lines.filter(({ op }) => op !== gone)
    if (side.slice(0, -1).some(({ eol }) => eol === 'none')) {
      throw patchProblem(at, 'a line in the middle of the hunk is said to be the end of the file')
    }
  }
}

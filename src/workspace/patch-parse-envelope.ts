import { type Hunk, type PatchLine, type PatchSection, patchLine, patchProblem, type Reader } from './patch-format.js'

const FILE = /^\*\*\* (Add|Update|Delete) File: (.+)$/
const MOVE = /^\*\*\* Move to: (.+)$/
const NUMBERS = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@/

/**
 * Reads the `*** Begin Patch` form.
 * @throws KikiError `invalid_arguments` with the line; also where `*** End Patch` is missing, because the rest may be too.
 */
export function parseEnvelope(lines: readonly string[]): PatchSection[] {
  const reader: Reader = { lines, at: lines.findIndex((line) => line.trim() === '*** Begin Patch') + 1 }
  const sections: PatchSection[] = []
  for (;;) {
    const line = lines[reader.at]?.trimEnd()
    if (line === undefined) throw patchProblem(lines.length, 'it ends without *** End Patch, so a part may be missing')
    if (line === '*** End Patch') break
    reader.at++
    if (line !== '') sections.push(readSection(reader, line))
  }
  const after = lines.slice(reader.at + 1).findIndex((line) => line.trim() !== '')
  if (after >= 0) throw patchProblem(reader.at + 2 + after, 'text stands after *** End Patch')
  if (sections.length === 0) throw patchProblem(undefined, 'it names no file')
  return sections
}

function readSection(reader: Reader, line: string): PatchSection {
  const [, act, path = ''] = FILE.exec(line) ?? []
  const at = reader.at
  if (act === undefined) throw patchProblem(at, 'it begins no file', 'Use *** Add File:, Update File: or Delete File:.')
  if (act === 'Delete') return { act: 'delete', path, showsContent: false, hunks: [], at }
  return act === 'Add' ? readAdded(reader, path) : readUpdated(reader, path)
}

function readAdded(reader: Reader, path: string): PatchSection {
  const { at } = reader
  const hunk = newHunk(at, '')
  for (let line = reader.lines[reader.at]; line?.startsWith('+'); line = reader.lines[reader.at]) {
    hunk.lines.push(patchLine('+', line.slice(1)))
    reader.at++
  }
  return { act: 'add', path, showsContent: false, hunks: hunk.lines.length > 0 ? [hunk] : [], at }
}

function readUpdated(reader: Reader, path: string): PatchSection {
  const section: PatchSection = { act: 'update', path, showsContent: false, hunks: [], at: reader.at }
  const to = MOVE.exec(reader.lines[reader.at]?.trimEnd() ?? '')?.[1]
  if (to !== undefined) {
    section.to = to
    reader.at++
  }
  for (let hunk = readHunk(reader); hunk !== undefined; hunk = readHunk(reader)) section.hunks.push(hunk)
  if (section.hunks.length > 0 || to !== undefined) return section
  throw patchProblem(section.at, 'the file has neither a change nor a new place')
}

function readHunk(reader: Reader): Hunk | undefined {
  const hunk = newHunk(reader.at + 1, reader.lines[reader.at]?.trimEnd() ?? '')
  for (let line = reader.lines[reader.at]; line?.startsWith('@@'); line = reader.lines[reader.at]) {
    readAnchor(hunk, line.trimEnd())
    reader.at++
  }
  for (let line = reader.lines[reader.at]; line !== undefined; line = reader.lines[reader.at]) {
    if (line.startsWith('@@')) break
    if (line.trimEnd() === '*** End of File') {
      hunk.atEnd = true
      reader.at++
      break
    }
    if (line.startsWith('*** ')) break
    // Blank lines before the next file are no part of the hunk.
    if (line.trim() === '' && !line.startsWith(' ') && endsHere(reader)) break
    hunk.lines.push(readLine(line, reader.at + 1))
    reader.at++
  }
  const empty = hunk.lines.length === 0
  if (empty && (hunk.anchors.length > 0 || hunk.header.startsWith('@@')))
    throw patchProblem(hunk.at, 'the hunk is empty')
  return empty ? undefined : hunk
}

function readAnchor(hunk: Hunk, line: string): void {
  const numbers = NUMBERS.exec(line)
  if (numbers !== null) {
    hunk.oldStart = Number(numbers[1])
    return
  }
  const anchor = line.slice(2).replace(/ @@$/, '').trim()
  if (anchor !== '' && anchor !== '@@') hunk.anchors.push(anchor)
}

/** An empty line is a blank line of the file: editors and models drop the space before it. */
function readLine(line: string, at: number): PatchLine {
  if (line === '' || line === '\r') return patchLine(' ', line)
  const op = line[0]
  if (op === ' ' || op === '-' || op === '+') return patchLine(op, line.slice(1))
  throw patchProblem(at, "it begins with none of ' ', '+' and '-'", "Put ' ' before each line that stays.")
}

function endsHere({ lines, at }: Reader): boolean {
  const next = lines.slice(at).find((line) => line.trim() !== '')
  return next === undefined || (next.startsWith('*** ') && next.trimEnd() !== '*** End of File')
}

function newHunk(at: number, header: string): Hunk {
  return { at, header: header.startsWith('@@') ? header : '', lines: [], anchors: [], atEnd: false, miscounted: false }
}

import { readSync } from 'node:fs'
import { KikiError } from '../../lib/errors.js'
import { sha256 } from '../../lib/json.js'
import { countLineEnds, cutText, decode, detect, eolOf } from '../../workspace/encoding.js'
import type { OpenedFile } from '../../workspace/files.js'
import { MAX_LINE_CHARS, type Page, type PageLine, type PageRequest } from '../../workspace/lines.js'
import { MAX_NOTEBOOK_BYTES, notebookLines } from '../../workspace/notebook.js'

/** What a notebook is shown as: a page of its cells, or a note why its text is shown as it is. */
export type ShownNotebook = { page: Extract<Page, { kind: 'text' }>; cells: number } | { note: string }

export function isNotebook(path: string): boolean {
  return path.toLowerCase().endsWith('.ipynb')
}

/** Reads a notebook as cells; offset and limits count the lines that are shown (FI-05). @throws KikiError `cancelled`. */
export function readNotebook(file: OpenedFile, request: PageRequest, signal: AbortSignal): ShownNotebook {
  const size = Number(file.stat.size)
  if (size > MAX_NOTEBOOK_BYTES) return { note: `it has more than ${MAX_NOTEBOOK_BYTES} bytes` }
  if (signal.aborted)
    throw new KikiError('cancelled', 'The read was cancelled.', { hint: 'Repeat it if it is wanted.' })
  const bytes = readWholeFile(file.fd, size)
  const found = detect(bytes, true)
  if (!found.text) return { note: 'it is no text' }
  const shown = notebookLines(decode(bytes.subarray(found.bom), found.encoding))
  if ('problem' in shown) return { note: shown.problem }
  const ends = { lf: 0, crlf: 0, cr: false }
  countLineEnds(bytes.subarray(found.bom), found.encoding, ends)
  const page = {
    ...({ kind: 'text', size, encoding: found.encoding, eol: eolOf(ends), changed: false } as const),
    ...{ totalLines: shown.lines.length, sha256: sha256(bytes), ...pageOf(shown.lines, request) },
  }
  return { page, cells: shown.cells }
}

function pageOf(
  all: readonly string[],
  { offset, maxLines, maxChars }: PageRequest,
): { lines: PageLine[]; next?: number } {
  const first = offset > 0 ? offset : Math.max(1, all.length + 1 + offset)
  const lines: PageLine[] = []
  let room = maxChars
  for (let number = first; number <= all.length; number++) {
    const whole = all[number - 1] ?? ''
    const text = cutText(whole, MAX_LINE_CHARS)
    const cost = text.length + String(number).length + 2
    if (lines.length === maxLines || (cost > room && lines.length > 0)) return { lines, next: number }
    room -= cost
    lines.push({ number, text, omitted: whole.length - text.length })
  }
  return { lines }
}

function readWholeFile(fd: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  let length = 0
  for (let count = -1; count !== 0 && length < size; length += count)
    count = readSync(fd, bytes, length, size - length, length)
  return bytes.subarray(0, length)
}

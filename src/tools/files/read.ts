import { z } from 'zod'
import { openFile } from '../../workspace/files.js'
import { createLineIndexes, type LineIndexes } from '../../workspace/line-index.js'
import { MAX_PAGE_CHARS, type Page, readPage } from '../../workspace/lines.js'
import { shownPath } from '../../workspace/list.js'
import { readOpened } from '../../workspace/read-file.js'
import { MAX_TEXT_PAGES, pdfText } from '../media/pdf.js'
import { MAX_MEDIA_BYTES } from '../media/read-media.js'
import { defineTool, type Tool, type ToolResult, text } from '../tool.js'
import { isNotebook, readNotebook } from './read-notebook.js'

/** Lines of one answer where the caller names no limit (FI-01). */
const DEFAULT_LINES = 2000
/** Characters kept free for the notes after the lines. */
const NOTES_CHARS = 600
const MAX_LIMIT = 1_000_000
const PDF = 'application/pdf'

const input = z.strictObject({
  path: z.string().min(1).describe('File.'),
  offset: z
    .int()
    .refine((value) => value !== 0, 'begins at 1: use 1 for the first line, -1 for the last')
    .optional()
    .describe('First line, from 1; -20 is the last 20 lines.'),
  limit: z.int().min(1).max(MAX_LIMIT).optional().describe('Lines.'),
})

/** The tool `Read` (FI-01 to FI-04). `indexes` remembers where the lines of files that were read last begin. */
export function createRead(indexes: LineIndexes = createLineIndexes()): Tool {
  return defineTool({
    name: 'Read',
    title: 'Read a file',
    description: [
      'Reads lines of a text file as `<number>\\t<text>`; all after the first tab is the line exactly. Notes in [brackets]',
      `follow; the last names the next offset. Default: ${DEFAULT_LINES} lines or what fits one answer; a larger limit gives a`,
      'larger result. Lines over 2,000 characters are clamped. From the end of files over 16 MB lines are numbered -1, -2, …',
      'Legacy 8-bit text shows U+FFFD. A PDF is shown as text, where offset and limit count pages; .ipynb as cells.',
    ].join(' '),
    effect: 'read',
    family: 'files',
    targets: ({ path }) => [{ path }],
    input,
    async run(context, args) {
      const file = openFile(context.workspace, args.path)
      try {
        const request = {
          offset: args.offset ?? 1,
          maxLines: args.limit ?? DEFAULT_LINES,
          maxChars: args.limit === undefined ? Math.max(1, context.limits.inlineText - NOTES_CHARS) : MAX_PAGE_CHARS,
        }
        const name = shownPath(file.display)
        const notebook = isNotebook(file.path) ? readNotebook(file, request, context.signal) : undefined
        if (notebook !== undefined && 'page' in notebook) {
          const { cells } = notebook
          const note = `[Notebook, cells: ${cells}. The file itself is JSON, which Grep shows and Edit changes.]`
          return showPage(notebook.page, name, request.offset, { note, facts: { notebook: true, cells } })
        }
        const page = await readPage(file, request, { indexes, signal: context.signal })
        if (page.kind === 'binary' && page.type === PDF) {
          return pdfText(context, { name, bytes: readOpened(file, MAX_MEDIA_BYTES) }, pagesOf(args), PDF_WORDS)
        }
        const more = notebook === undefined ? {} : { note: `[Not shown as a notebook: ${notebook.note}.]` }
        return showPage(page, name, request.offset, more)
      } finally {
        file.close()
      }
    },
  })
}

/** Of a PDF, offset and limit count pages (FI-05). */
function pagesOf({ offset = 1, limit = MAX_TEXT_PAGES }: { offset?: number | undefined; limit?: number | undefined }) {
  return { first: offset, most: Math.min(limit, MAX_TEXT_PAGES) }
}

const PDF_WORDS = {
  next: (page: number) => `Next: offset ${page}; offset and limit count pages.`,
  images: 'ReadMedia with "as": "images" shows pages as they look.',
}

/** Words a page for the client. Facts `from` and `to` are 0 where no line is shown. */
export function showPage(
  page: Page,
  display: string,
  offset: number,
  more: { note?: string; facts?: Record<string, unknown> } = {},
): ToolResult {
  if (page.kind === 'binary') {
    const value = `${display}: binary file, ${page.type}, ${page.size} bytes. It is not text; ReadMedia shows it where it is shared.`
    return text(value, { binary: true, type: page.type, size: page.size })
  }
  const clamped = page.lines.some((line) => line.omitted > 0)
  const facts = {
    from: page.lines[0]?.number ?? 0,
    to: page.lines.at(-1)?.number ?? 0,
    encoding: page.encoding,
    eol: page.eol,
    truncated: page.next !== undefined || clamped,
    ...(page.next === undefined ? {} : { next_offset: page.next }),
    ...(page.totalLines === undefined ? {} : { total_lines: page.totalLines }),
    ...(page.sha256 === undefined ? {} : { sha256: page.sha256 }),
    ...more.facts,
  }
  return text([...page.lines.map(showLine), ...notesOf(page, display, offset, more.note)].join('\n'), facts)
}

function showLine(line: { number: number; text: string; omitted: number }): string {
  const marker = line.omitted > 0 ? `… [${line.omitted} more characters of this line left out]` : ''
  return `${line.number}\t${line.text}${marker}`
}

function notesOf(
  page: Extract<Page, { kind: 'text' }>,
  display: string,
  offset: number,
  note: string | undefined,
): string[] {
  const notes: string[] = []
  if (page.lines.length === 0) notes.push(emptyNote(page, display, offset))
  if (page.encoding === 'unknown-8bit') {
    notes.push(
      '[This text is not valid UTF-8 (encoding: unknown-8bit); each U+FFFD (\ufffd) stands for bytes that could not be decoded. Edit only changes ASCII text in it.]',
    )
  } else if (page.encoding !== 'utf-8') notes.push(`[Encoding: ${page.encoding}.]`)
  if (page.changed) notes.push('[The file changed while it was read; read it again if the lines must belong together.]')
  if (note !== undefined) notes.push(note)
  if (page.next !== undefined) {
    const of = page.totalLines === undefined ? '' : ` of ${page.totalLines}`
    notes.push(`[Lines ${page.lines[0]?.number} to ${page.lines.at(-1)?.number}${of}. Next: offset ${page.next}.]`)
  }
  return notes
}

function emptyNote(page: Extract<Page, { kind: 'text' }>, display: string, offset: number): string {
  if (page.size === 0) return `[${display}: empty file (0 bytes).]`
  if (page.totalLines === 0 && page.size <= 3)
    return `[${display}: empty file (${page.size} bytes: only a byte order mark).]`
  if (page.totalLines === 0) return `[${display}: nothing to show.]`
  const total = page.totalLines === undefined ? '' : ` It has ${page.totalLines} lines.`
  return `[${display}: offset ${offset} is past the end.${total} Use an offset from 1, or a negative one to count from the end.]`
}

import { KikiError } from '../../lib/errors.js'
import type { ToolContext, ToolResult } from '../tool.js'
import { decode } from './decode.js'
import type { PageRange } from './media-worker.js'

/** Page images of one answer. */
const MAX_IMAGES = 8
/** Pages of text of one answer; the inline limit may end it sooner. */
export const MAX_TEXT_PAGES = 500
/** Characters kept free for the note at the end. */
const NOTE_CHARS = 300

export interface MediaFile {
  /** For messages. */
  name: string
  bytes: Buffer
}

/** `2`, `1-3` or nothing at all. @throws KikiError `invalid_arguments`. */
export function pagesOf(given: string | undefined, most: number): PageRange {
  if (given === undefined) return { first: 1, most }
  const [, from = '', to] = /^([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?$/.exec(given) ?? []
  const [first, last] = [Number(from), Number(to ?? from)]
  if (from === '' || last < first) {
    throw new KikiError('invalid_arguments', `"${given}" names no pages.`, {
      hint: 'Write one page as "3", several as "3-5".',
    })
  }
  return { first, most: Math.min(last - first + 1, most) }
}

/**
 * The text of a PDF by pages: whole ones, as many as fit one answer (FI-05).
 * @param words.next how the caller gets the pages from there on.
 * @param words.images how it sees pages as they look.
 * @throws KikiError as `decode`.
 */
export async function pdfText(
  context: ToolContext,
  { name, bytes }: MediaFile,
  range: PageRange,
  words: { next(page: number, last: number): string; images: string },
): Promise<ToolResult> {
  const maxChars = Math.max(1, context.limits.inlineText - NOTE_CHARS)
  const { head } = await decode(context, name, bytes, { do: 'pdf_text', ...range, maxChars })
  if (head.kind !== 'pdf_text') throw new Error('a decoder answers what it was asked')
  const shown = head.texts.map(
    ({ page, text }) => `[page ${page} of ${head.pages}]\n${text === '' ? '(no text on this page)' : text}`,
  )
  const from = head.texts[0]?.page ?? 0
  const to = head.texts.at(-1)?.page ?? 0
  const next = to < head.pages ? `${words.next(to + 1, head.pages)} ` : ''
  return {
    content: [{ type: 'text', text: [...shown, `[PDF, pages: ${head.pages}. ${next}${words.images}]`].join('\n\n') }],
    facts: { type: 'application/pdf', bytes: bytes.length, pages: head.pages, from, to },
  }
}

/** Pages of a PDF as they look. @throws KikiError as `decode`. */
export async function pdfImages(
  context: ToolContext,
  { name, bytes }: MediaFile,
  { pages, maxPixels }: { pages: string | undefined; maxPixels: number },
): Promise<ToolResult> {
  const range = pagesOf(pages, pages === undefined ? 1 : MAX_IMAGES)
  const maxBytes = context.limits.inlineMedia
  const { head, body } = await decode(context, name, bytes, { do: 'pdf_images', ...range, maxBytes, maxPixels })
  if (head.kind !== 'pdf_images') throw new Error('a decoder answers what it was asked')
  let at = 0
  const images = head.images.map(({ bytes: size }) => {
    const own = body.subarray(at, at + size)
    at += size
    return { type: 'image' as const, data: own.toString('base64'), mimeType: mimeOf(own) }
  })
  const from = head.images[0]?.page ?? 0
  const to = head.images.at(-1)?.page ?? 0
  const incomplete = head.images.filter((one) => one.incomplete).map(({ page }) => page)
  const text = [
    `Pages ${from} to ${to} of ${head.pages} of ${name}.`,
    ...(incomplete.length > 0 ? [`Something on these pages could not be drawn and is missing: ${incomplete}.`] : []),
    ...(to < head.pages ? [`More: "pages": "${to + 1}".`] : []),
  ].join(' ')
  return {
    content: [...images, { type: 'text', text }],
    facts: {
      ...{ type: 'application/pdf', bytes: bytes.length, pages: head.pages, from, to },
      ...(incomplete.length > 0 ? { incomplete } : {}),
    },
  }
}

function mimeOf(body: Buffer): string {
  return body[0] === 0x89 ? 'image/png' : 'image/jpeg'
}

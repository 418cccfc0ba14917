import { KikiError } from '../../lib/errors.js'
import type { ToolContext, ToolResult } from '../tool.js'
import { decode } from './decode.js'

/** Page images of one answer. */
const MAX_IMAGES = 8
/** Pages of text of one answer; the inline limit may end it sooner. */
const MAX_TEXT_PAGES = 500

/** `2`, `1-3` or nothing at all. @throws KikiError `invalid_arguments`. */
export function pagesOf(given: string | undefined, most: number): { first: number; last: number } {
  if (given === undefined) return { first: 1, last: most }
  const [, from = '', to] = /^([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?$/.exec(given) ?? []
  const [first, last] = [Number(from), Number(to ?? from)]
  if (from === '' || last < first) {
    throw new KikiError('invalid_arguments', `"${given}" names no pages.`, {
      hint: 'Write one page as "3", several as "3-5".',
    })
  }
  return { first, last: Math.min(last, first + most - 1) }
}

/** The text of a PDF by pages (FI-05). */
export async function pdfText(
  context: ToolContext,
  name: string,
  bytes: Buffer,
  pages: string | undefined,
): Promise<ToolResult> {
  const range = pagesOf(pages, MAX_TEXT_PAGES)
  const { head } = await decode(context, name, bytes, { do: 'pdf_text', ...range, maxChars: context.limits.inlineText })
  if (head.kind !== 'pdf_text') throw new Error('a decoder answers what it was asked')
  const shown = head.texts.map(
    ({ page, text }) => `[page ${page} of ${head.pages}]\n${text === '' ? '(no text on this page)' : text}`,
  )
  const last = head.texts.at(-1)?.page ?? range.first
  const next = last < head.pages ? `ReadMedia {"path": …, "pages": "${last + 1}-${head.pages}"} goes on; ` : ''
  const note = `[PDF, ${head.pages} pages. ${next}"as": "images" shows pages as they look.]`
  return {
    content: [{ type: 'text', text: [...shown, note].join('\n\n') }],
    facts: { type: 'application/pdf', pages: head.pages, from: range.first, to: last },
  }
}

/** Pages of a PDF as they look. */
export async function pdfImages(
  context: ToolContext,
  name: string,
  bytes: Buffer,
  { pages, maxPixels }: { pages: string | undefined; maxPixels: number },
): Promise<ToolResult> {
  const range = pagesOf(pages, pages === undefined ? 1 : MAX_IMAGES)
  const { head, body } = await decode(context, name, bytes, {
    do: 'pdf_images',
    ...range,
    maxBytes: context.limits.inlineMedia,
    maxPixels,
  })
  if (head.kind !== 'pdf_images') throw new Error('a decoder answers what it was asked')
  let at = 0
  const images = head.images.map(({ bytes: size }) => {
    const data = body.subarray(at, at + size).toString('base64')
    at += size
    return { type: 'image' as const, data, mimeType: mimeOf(body.subarray(at - size)) }
  })
  const last = head.images.at(-1)?.page ?? range.first
  const more = last < head.pages ? ` More: "pages": "${last + 1}".` : ''
  return {
    content: [...images, { type: 'text', text: `Pages ${range.first} to ${last} of ${head.pages} of ${name}.${more}` }],
    facts: { type: 'application/pdf', pages: head.pages, from: range.first, to: last },
  }
}

function mimeOf(body: Buffer): string {
  return body[0] === 0x89 ? 'image/png' : 'image/jpeg'
}

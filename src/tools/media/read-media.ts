import { z } from 'zod'
import { KEPT_SCHEME, type KeptBytes, keptReference } from '../../lib/content.js'
import { KikiError } from '../../lib/errors.js'
import { detect, SNIFF_BYTES } from '../../workspace/encoding.js'
import { shownPath } from '../../workspace/list.js'
import { readFile } from '../../workspace/read-file.js'
import { defineTool, type ToolContext, type ToolResult } from '../tool.js'
import { decode } from './decode.js'
import { MAX_TEXT_PAGES, type MediaFile, pagesOf, pdfImages, pdfText } from './pdf.js'

/** The largest file, in bytes. */
export const MAX_MEDIA_BYTES = 64 * 1024 * 1024
/** More on a side helps no model that looks at it. */
const MAX_PIXELS = 1568
const REFERENCE = /^kiki-file:\/\/(op_[\w-]+)\/(\d{1,4})$/
/** Drawing programs begin an SVG with a word about themselves. */
const HEAD_BYTES = 4096
/** Pictures that nothing here can decode: they are handed over as they are. */
const UNDECODED = new Set(['image/bmp', 'image/x-icon', 'image/heic', 'image/heif'])

const input = z.strictObject({
  path: z.string().min(1).describe('File, or a kiki-file:// reference.'),
  pages: z.string().optional().describe('Of a PDF: "3" or "3-5".'),
  as: z.enum(['text', 'images']).default('text').describe('How PDF pages are shown.'),
})

type Input = z.infer<typeof input>

/** MD-01, FI-05. */
export const readMedia = defineTool<Input>({
  name: 'ReadMedia',
  title: 'Show an image, PDF, audio or other file',
  description:
    'Shows images, audio, PDF pages and other binary files of up to 64 MiB. Large images are scaled down; the original is ' +
    'kept, and the answer names its kiki-file:// reference. Text files: use Read.',
  effect: 'read',
  family: 'media',
  countsAs: ['Read'],
  targets: ({ path }) => (path.startsWith(KEPT_SCHEME) ? [] : [{ path }]),
  input,
  async run(context, args) {
    const file = bytesOf(context, args.path)
    const type = typeOf(file)
    if (type === 'application/pdf') return pdf(context, file, args)
    if (type.startsWith('image/') && !UNDECODED.has(type)) return image(context, file, type)
    return type.startsWith('audio/') ? audio(context, file, type) : other(context, file, type)
  },
})

/** Of the workspace by the safe walk, or a part that an earlier call of this session kept. */
function bytesOf(context: ToolContext, path: string): MediaFile {
  if (!path.startsWith(KEPT_SCHEME)) {
    const { bytes, display } = readFile(context.workspace, path, MAX_MEDIA_BYTES)
    return { name: shownPath(display), bytes }
  }
  const [, operation = '', part] = REFERENCE.exec(path) ?? []
  const kept = context.savedPart(operation, Number(part))
  if (kept === undefined) {
    throw new KikiError('not_found', `There is no ${path} in this session.`, {
      hint: 'References hold as long as their operation is kept.',
    })
  }
  if (kept.length > MAX_MEDIA_BYTES) {
    throw new KikiError('too_large', `${path} has ${kept.length} bytes; at most ${MAX_MEDIA_BYTES} are shown.`, {
      hint: `kiki_operation {"action":"read","operation_id":"${operation}","part":${part}} pages it.`,
    })
  }
  return { name: path, bytes: kept.read(0, kept.length) }
}

/** By content, never by name, and text by what Read goes by. SVG has no signature of its own. @throws KikiError for text. */
function typeOf({ name, bytes }: MediaFile): string {
  if (isSvg(bytes.toString('utf8', 0, HEAD_BYTES))) return 'image/svg+xml'
  const found = detect(bytes.subarray(0, SNIFF_BYTES), bytes.length <= SNIFF_BYTES)
  if (!found.text) return found.type
  throw new KikiError('invalid_arguments', `${name} is text.`, { hint: 'Read shows it.' })
}

function pdf(context: ToolContext, file: MediaFile, { pages, as }: Pick<Input, 'pages' | 'as'>): Promise<ToolResult> {
  if (as === 'images') return pdfImages(context, file, { pages, maxPixels: MAX_PIXELS })
  return pdfText(context, file, pagesOf(pages, MAX_TEXT_PAGES), {
    next: (page, last) => `"pages": "${page}-${last}" goes on.`,
    images: '"as": "images" shows pages as they look.',
  })
}

async function image(context: ToolContext, { name, bytes }: MediaFile, type: string): Promise<ToolResult> {
  const { inlineMedia: maxBytes } = context.limits
  const { head, body } = await decode(context, name, bytes, { do: 'image', maxBytes, maxPixels: MAX_PIXELS })
  if (head.kind !== 'image') throw new Error('a decoder answers what it was asked')
  const { width, height, frames, scaled } = head
  const shown = { type: 'image' as const, data: body.toString('base64'), mimeType: scaled?.mimeType ?? type }
  const many = frames > 1 ? `, ${frames} frames` : ''
  const what = `${name}: ${type}, ${width} × ${height} pixels${many}, ${bytes.length} bytes.`
  const facts = { type, width, height, bytes: bytes.length, ...(frames > 1 ? { frames } : {}) }
  if (scaled === undefined) return { content: [shown, { type: 'text', text: what }], facts }
  const { words, reference } = keptAs(context, 2)
  const first = frames > 1 ? ', only its first frame' : ''
  const how = `Shown as ${scaled.mimeType} of ${scaled.width} × ${scaled.height}${first}. The original is ${words}`
  return {
    content: [shown, { type: 'text', text: `${what} ${how}` }, kept(bytes, type)],
    facts: {
      ...facts,
      shown: { width: scaled.width, height: scaled.height, type: scaled.mimeType },
      original: reference,
    },
  }
}

function kept(bytes: Buffer, mimeType: string): KeptBytes {
  return { type: 'kept', mimeType, length: bytes.length, read: (start, end) => bytes.subarray(start, end) }
}

function keptAs({ operationId }: ToolContext, part: number): { words: string; reference: string } {
  const reference = keptReference(operationId, part)
  const call = `kiki_operation {"action":"read","operation_id":"${operationId}","part":${part}}`
  return { reference, words: `kept as ${reference}: ${call} pages it.` }
}

/** What is larger than the client takes inline is left out of its answer and paged as its part 0. */
function audio(context: ToolContext, { name, bytes }: MediaFile, mimeType: string): ToolResult {
  const { words, reference } = keptAs(context, 0)
  const isCut = bytes.length > context.limits.inlineMedia
  const what = `${name}: ${mimeType}, ${bytes.length} bytes.`
  return {
    content: [
      { type: 'audio', data: bytes.toString('base64'), mimeType },
      { type: 'text', text: isCut ? `${what} It is ${words}` : what },
    ],
    facts: { type: mimeType, bytes: bytes.length, ...(isCut ? { original: reference } : {}) },
  }
}

/** Kept in any case, since it is named by its reference. */
function other(context: ToolContext, { name, bytes }: MediaFile, mimeType: string): ToolResult {
  const { words, reference } = keptAs(context, 0)
  return {
    content: [
      { type: 'resource', resource: { uri: reference, mimeType, blob: bytes.toString('base64') } },
      { type: 'text', text: `${name}: ${mimeType}, ${bytes.length} bytes. It is ${words}` },
    ],
    facts: { type: mimeType, bytes: bytes.length, original: reference },
  }
}

/** What may stand before the root of an SVG, each with its end. */
const PROLOGUES = [
  ['<?xml', '>'],
  ['<!--', '-->'],
  ['<!DOCTYPE svg', '>'],
] as const

/** Looked through once, whatever it holds: a pattern over all of it can be made to take for ever. */
function isSvg(head: string): boolean {
  let rest = head.replace(/^\ufeff/, '').trimStart()
  for (;;) {
    const prologue = PROLOGUES.find(([begin]) => rest.startsWith(begin))
    if (prologue === undefined) return /^<svg[\s>]/.test(rest)
    const [begin, close] = prologue
    const end = rest.indexOf(close, begin.length)
    if (end < 0) return false
    rest = rest.slice(end + close.length).trimStart()
  }
}

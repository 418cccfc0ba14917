import { z } from 'zod'
import type { KeptBytes } from '../../lib/content.js'
import { KikiError } from '../../lib/errors.js'
import { sniffType } from '../../workspace/file-type.js'
import { shownPath } from '../../workspace/list.js'
import { readFile } from '../../workspace/read-file.js'
import { defineTool, type ToolContext, type ToolResult } from '../tool.js'
import { decode } from './decode.js'
import { pdfImages, pdfText } from './pdf.js'

/** The largest file, in bytes. */
const MAX_BYTES = 64 * 1024 * 1024
/** More on a side helps no model that looks at it. */
const MAX_PIXELS = 1568
const REFERENCE = /^kiki-file:\/\/(op_[\w-]+)\/(\d{1,4})$/
const HEAD_BYTES = 512

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
  targets: ({ path }) => (REFERENCE.test(path) ? [] : [{ path }]),
  input,
  async run(context, args) {
    const file = bytesOf(context, args.path)
    const type = typeOf(file.bytes)
    if (type === 'application/pdf') {
      if (args.as === 'text') return pdfText(context, file.name, file.bytes, args.pages)
      return pdfImages(context, file.name, file.bytes, { pages: args.pages, maxPixels: MAX_PIXELS })
    }
    if (type?.startsWith('image/') === true) return image(context, file)
    if (type?.startsWith('audio/') === true) return audio(file, type)
    if (type === undefined && !file.bytes.subarray(0, HEAD_BYTES).includes(0)) {
      throw new KikiError('invalid_arguments', `${file.name} looks like text.`, { hint: 'Read shows it.' })
    }
    return other(context, file, type ?? 'application/octet-stream')
  },
})

interface MediaFile {
  name: string
  bytes: Buffer
}

/** Of the workspace by the safe walk, or a part that an earlier call of this session kept. */
function bytesOf(context: ToolContext, path: string): MediaFile {
  const [, operation, part] = REFERENCE.exec(path) ?? []
  if (operation === undefined) {
    const { bytes, display } = readFile(context.workspace, path, MAX_BYTES)
    return { name: shownPath(display), bytes }
  }
  const kept = context.savedPart(operation, Number(part))
  if (kept === undefined) {
    throw new KikiError('not_found', `There is no ${path} in this session.`, {
      hint: 'References hold as long as their operation is kept.',
    })
  }
  return { name: path, bytes: kept }
}

/** By content, never by name. SVG has no signature of its own. */
function typeOf(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, HEAD_BYTES)
  if (
    /^(?:\ufeff)?\s*(?:<\?xml[^>]*>\s*|<!--[\s\S]*?-->\s*|<!DOCTYPE svg[^>]*>\s*)*<svg[\s>]/.test(head.toString('utf8'))
  )
    return 'image/svg+xml'
  return sniffType(head)
}

async function image(context: ToolContext, { name, bytes }: MediaFile): Promise<ToolResult> {
  const { inlineMedia: maxBytes } = context.limits
  const { head, body } = await decode(context, name, bytes, { do: 'image', maxBytes, maxPixels: MAX_PIXELS })
  if (head.kind !== 'image') throw new Error('a decoder answers what it was asked')
  const { width, height, scaled } = head
  const type = typeOf(bytes) ?? 'application/octet-stream'
  const mimeType = scaled?.mimeType ?? type
  const facts = { type, width, height, bytes: bytes.length }
  const shown = { type: 'image' as const, data: body.toString('base64'), mimeType }
  const what = `${name}: ${type}, ${width} × ${height} pixels, ${bytes.length} bytes.`
  if (scaled === undefined) return { content: [shown, { type: 'text', text: what }], facts }
  const reference = `kiki-file://${context.operationId}/2`
  const how = `Shown as ${scaled.mimeType} of ${scaled.width} × ${scaled.height}. The original is kept as ${reference}: kiki_operation {"action":"read","operation_id":"${context.operationId}","part":2} pages it.`
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

/** What is larger than the client takes inline is left out of its answer and paged as its part 0. */
function audio({ name, bytes }: MediaFile, mimeType: string): ToolResult {
  return {
    content: [
      { type: 'audio', data: bytes.toString('base64'), mimeType },
      { type: 'text', text: `${name}: ${mimeType}, ${bytes.length} bytes.` },
    ],
    facts: { type: mimeType, bytes: bytes.length },
  }
}

function other({ operationId }: ToolContext, { name, bytes }: MediaFile, mimeType: string): ToolResult {
  const uri = `kiki-file://${operationId}/0`
  return {
    content: [
      { type: 'resource', resource: { uri, mimeType, blob: bytes.toString('base64') } },
      { type: 'text', text: `${name}: ${mimeType}, ${bytes.length} bytes.` },
    ],
    facts: { type: mimeType, bytes: bytes.length },
  }
}

/**
 * A program of its own that decodes images and PDF files, so that what a hostile file does to a decoder happens to nobody else.
 * Its one argument is a request; it answers on standard output with a line of JSON, then the bytes that this line counts.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

export type MediaRequest =
  | { do: 'image'; file: string; maxBytes: number; maxPixels: number }
  | { do: 'pdf_text'; file: string; first: number; last: number; maxChars: number }
  | { do: 'pdf_images'; file: string; first: number; last: number; maxBytes: number; maxPixels: number }

export interface ImageMade {
  width: number
  height: number
  /** Undefined where the file itself will do. */
  scaled?: { width: number; height: number; mimeType: string; bytes: number }
}

export type MediaAnswer =
  | ({ kind: 'image' } & ImageMade)
  | { kind: 'pdf_text'; pages: number; texts: { page: number; text: string }[] }
  | { kind: 'pdf_images'; pages: number; images: { page: number; width: number; height: number; bytes: number }[] }
  /** The file's fault: `encrypted`, `broken`, `too_large`, `no_page`. */
  | { kind: 'refused'; code: string; message: string }

/** Decoded pixels beyond which an image is not opened: a small file can hold a picture of any size. */
const MAX_INPUT_PIXELS = 100_000_000
/** What every client shows. */
const SHOWN_BY_CLIENTS = new Set(['png', 'jpeg', 'gif', 'webp'])
const STEPS = 8

class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

async function answer(request: MediaRequest): Promise<{ head: MediaAnswer; bodies: Buffer[] }> {
  const bytes = readFileSync(request.file)
  if (request.do === 'image') return image(bytes, request)
  const pdf = await openPdf(bytes)
  const { first } = request
  const last = Math.min(request.last, pdf.numPages)
  if (first > pdf.numPages) throw new Refused('no_page', `It has ${pdf.numPages} pages; there is no page ${first}.`)
  if (request.do === 'pdf_text') {
    const texts: { page: number; text: string }[] = []
    let chars = 0
    for (let page = first; page <= last && chars <= request.maxChars; page++) {
      const text = await pageText(pdf, page)
      texts.push({ page, text })
      chars += text.length
    }
    return { head: { kind: 'pdf_text', pages: pdf.numPages, texts }, bodies: [] }
  }
  const bodies: Buffer[] = []
  const images: { page: number; width: number; height: number; bytes: number }[] = []
  for (let page = first; page <= last; page++) {
    const { head, bodies: made } = await image(await pageImage(pdf, page, request.maxPixels), {
      ...request,
      do: 'image',
      maxBytes: Math.floor(request.maxBytes / (last - first + 1)),
    })
    const body = made[0] as Buffer
    if (head.kind !== 'image') throw new Error('an image is made of an image')
    const { width, height } = head.scaled ?? head
    images.push({ page, width, height, bytes: body.length })
    bodies.push(body)
  }
  return { head: { kind: 'pdf_images', pages: pdf.numPages, images }, bodies }
}

/** Upright, within the limits of bytes and pixels, in a format that clients show; its own bytes where they are all that already. */
async function image(
  bytes: Buffer,
  limits: { maxBytes: number; maxPixels: number; file: string; do: string },
): Promise<{ head: MediaAnswer; bodies: Buffer[] }> {
  const { default: sharp } = await import('sharp')
  const open = () => sharp(bytes, { limitInputPixels: MAX_INPUT_PIXELS, failOn: 'error' })
  const found = await open().metadata()
  const turned = (found.orientation ?? 1) >= 5
  const [width = 0, height = 0] = turned ? [found.height, found.width] : [found.width, found.height]
  if (width * height > MAX_INPUT_PIXELS)
    throw new Refused('too_large', `It is ${width} × ${height} pixels; more than ${MAX_INPUT_PIXELS} are not opened.`)
  const fits = width <= limits.maxPixels && height <= limits.maxPixels && bytes.length <= limits.maxBytes
  if (fits && SHOWN_BY_CLIENTS.has(found.format ?? '') && (found.orientation ?? 1) === 1) {
    // Whole, or it is no image.
    await open().stats()
    return { head: { kind: 'image', width, height }, bodies: [bytes] }
  }
  let side = limits.maxPixels
  for (let step = 0; step < STEPS; step++) {
    const resized = open().rotate().resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true })
    const made =
      found.hasAlpha === true
        ? resized.png({ compressionLevel: 9, palette: step > 0 })
        : resized.jpeg({ quality: step === 0 ? 85 : 70 })
    const { data, info } = await made.toBuffer({ resolveWithObject: true })
    if (data.length <= limits.maxBytes) {
      const mimeType = found.hasAlpha === true ? 'image/png' : 'image/jpeg'
      const scaled = { width: info.width, height: info.height, mimeType, bytes: data.length }
      return { head: { kind: 'image', width, height, scaled }, bodies: [data] }
    }
    side = Math.max(16, Math.floor(Math.min(side, Math.max(info.width, info.height)) * 0.7))
  }
  throw new Refused('too_large', `It cannot be made smaller than ${limits.maxBytes} bytes.`)
}

type Pdf = Awaited<ReturnType<typeof openPdf>>

async function openPdf(bytes: Buffer) {
  const { getDocument, VerbosityLevel } = await import('pdfjs-dist/legacy/build/pdf.mjs')
  const own = path.dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'))
  const folder = (name: string) => `${path.join(own, name)}${path.sep}`
  const task = getDocument({
    data: new Uint8Array(bytes),
    isEvalSupported: false,
    useSystemFonts: false,
    disableFontFace: true,
    enableXfa: false,
    verbosity: VerbosityLevel.ERRORS,
    standardFontDataUrl: folder('standard_fonts'),
    cMapUrl: folder('cmaps'),
    wasmUrl: folder('wasm'),
  })
  return task.promise.catch((error: unknown) => {
    const name = error instanceof Error ? error.name : ''
    if (name === 'PasswordException') throw new Refused('encrypted', 'It is encrypted: only its password opens it.')
    throw new Refused(
      'broken',
      `It is no PDF that can be read (${error instanceof Error ? error.message : String(error)}).`,
    )
  })
}

async function pageText(pdf: Pdf, number: number): Promise<string> {
  const page = await pdf.getPage(number)
  const { items } = await page.getTextContent()
  const text = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('')
  page.cleanup()
  return text.trimEnd()
}

interface PageCanvas {
  toBuffer(mimeType: 'image/png'): Buffer
}

async function pageImage(pdf: Pdf, number: number, maxPixels: number): Promise<Buffer> {
  const page = await pdf.getPage(number)
  const plain = page.getViewport({ scale: 1 })
  const scale = Math.min(2, maxPixels / Math.max(plain.width, plain.height))
  const viewport = page.getViewport({ scale })
  // Its own: a path of another copy of the canvas is none to it.
  const factory = pdf.canvasFactory as { create(width: number, height: number): { canvas: PageCanvas } }
  const { canvas } = factory.create(Math.max(1, Math.ceil(viewport.width)), Math.max(1, Math.ceil(viewport.height)))
  await page.render({ canvas: canvas as never, viewport, background: 'white' }).promise
  page.cleanup()
  return canvas.toBuffer('image/png')
}

function say(head: MediaAnswer, bodies: readonly Buffer[] = []): void {
  process.stdout.write(Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...bodies]))
}

answer(JSON.parse(process.argv[2] ?? '') as MediaRequest).then(
  ({ head, bodies }) => say(head, bodies),
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    say({ kind: 'refused', code: error instanceof Refused ? error.code : 'broken', message })
  },
)

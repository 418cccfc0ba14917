/**
 * A program of its own that decodes images and PDF files, so that what a hostile file does to a decoder happens to nobody else.
 * Its one argument is a request; it answers on standard output with a line of JSON, then the bytes that this line counts.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Sharp } from 'sharp'

export type MediaRequest =
  | { do: 'image'; file: string; maxBytes: number; maxPixels: number }
  | ({ do: 'pdf_text'; file: string; maxChars: number } & PageRange)
  | ({ do: 'pdf_images'; file: string; maxBytes: number; maxPixels: number } & PageRange)

export interface PageRange {
  /** From 1; -1 is the last page. */
  first: number
  /** How many pages, at most. */
  most: number
}

export interface ImageMade {
  width: number
  height: number
  /** Of an animation, or pages of a TIFF: only the first is in what was made. */
  frames: number
  /** Undefined where the file itself will do. */
  scaled?: { width: number; height: number; mimeType: string; bytes: number }
}

export type MediaAnswer =
  | ({ kind: 'image' } & ImageMade)
  | { kind: 'pdf_text'; pages: number; texts: { page: number; text: string }[] }
  | { kind: 'pdf_images'; pages: number; images: PageImage[] }
  /** The file's fault: `encrypted`, `broken`, `too_large`, `no_page`. */
  | { kind: 'refused'; code: string; message: string }

export interface PageImage {
  page: number
  width: number
  height: number
  bytes: number
  /** Something of the page could not be drawn, so that it is not as it looks elsewhere. */
  incomplete: boolean
}

/** Decoded pixels beyond which an image is not opened: a small file can hold a picture of any size. */
const MAX_INPUT_PIXELS = 100_000_000
/** What every client shows. */
const SHOWN_BY_CLIENTS = new Set(['png', 'jpeg', 'gif', 'webp'])
/** Each attempt to come below the limit of bytes makes the sides shorter, by between these; below so many pixels nothing is seen. */
const SMALLER = 0.8
const SMALLEST = 0.4
const LEAST_SIDE = 16
/** Pixels of an image within a PDF beyond which it is left out. */
const MAX_PDF_IMAGE_PIXELS = 50_000_000

class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

async function answer(request: MediaRequest): Promise<Answer> {
  const bytes = readFileSync(request.file)
  if (request.do === 'image') {
    const { body, ...made } = await image(bytes, request)
    return { head: { kind: 'image', ...made }, bodies: [body] }
  }
  const said: string[] = []
  const pdf = await openPdf(bytes, said)
  const first = request.first < 0 ? Math.max(1, pdf.numPages + 1 + request.first) : request.first
  if (first > pdf.numPages) throw new Refused('no_page', `It has ${pdf.numPages} pages; there is no page ${first}.`)
  const last = Math.min(first + request.most - 1, pdf.numPages)
  if (request.do === 'pdf_text') return pdfTexts(pdf, { first, last, maxChars: request.maxChars })
  return pdfImages(pdf, { ...request, first, last }, said)
}

type Answer = { head: MediaAnswer; bodies: Buffer[] }

/** As many whole pages as fit, and one at least. */
async function pdfTexts(pdf: Pdf, { first, last, maxChars }: { first: number; last: number; maxChars: number }) {
  const texts: { page: number; text: string }[] = []
  let room = maxChars
  for (let page = first; page <= last; page++) {
    const text = await pageText(pdf, page)
    room -= text.length + PAGE_MARK_CHARS
    if (room < 0 && texts.length > 0) break
    texts.push({ page, text })
  }
  return { head: { kind: 'pdf_text' as const, pages: pdf.numPages, texts }, bodies: [] }
}

async function pdfImages(
  pdf: Pdf,
  { first, last, maxBytes, maxPixels }: { first: number; last: number; maxBytes: number; maxPixels: number },
  said: string[],
): Promise<Answer> {
  const bodies: Buffer[] = []
  const images: PageImage[] = []
  const each = { maxBytes: Math.floor(maxBytes / (last - first + 1)), maxPixels }
  for (let page = first; page <= last; page++) {
    said.length = 0
    const drawn = await pageImage(pdf, page, maxPixels)
    const { width, height, scaled, body } = await image(drawn, each)
    const size = scaled ?? { width, height }
    const incomplete = said.some((line) => NOT_DRAWN.test(line))
    images.push({ page, width: size.width, height: size.height, bytes: body.length, incomplete })
    bodies.push(body)
  }
  return { head: { kind: 'pdf_images', pages: pdf.numPages, images }, bodies }
}

/** Upright, within the limits of bytes and pixels, in a format that clients show; its own bytes where they are all that already. */
async function image(
  bytes: Buffer,
  limits: { maxBytes: number; maxPixels: number },
): Promise<ImageMade & { body: Buffer }> {
  const { default: sharp } = await import('sharp')
  const open = () => sharp(bytes, { limitInputPixels: MAX_INPUT_PIXELS, failOn: 'error' })
  const found = await sharp(bytes, { limitInputPixels: false }).metadata()
  const turned = (found.orientation ?? 1) >= 5
  const [width = 0, height = 0] = turned ? [found.height, found.width] : [found.width, found.height]
  const frames = found.pages ?? 1
  if (width * height > MAX_INPUT_PIXELS)
    throw new Refused('too_large', `It is ${width} × ${height} pixels; more than ${MAX_INPUT_PIXELS} are not opened.`)
  const fits = width <= limits.maxPixels && height <= limits.maxPixels && bytes.length <= limits.maxBytes
  const isShown = SHOWN_BY_CLIENTS.has(found.format ?? '') && found.space !== 'cmyk'
  if (fits && isShown && (found.orientation ?? 1) === 1) {
    // Whole, or it is no image.
    await open().stats()
    return { width, height, frames, body: bytes }
  }
  // Decoded once: a large image takes seconds.
  const upright = await open()
    .rotate()
    .resize({ width: limits.maxPixels, height: limits.maxPixels, fit: 'inside', withoutEnlargement: true })
    .png({ compressionLevel: 0 })
    .toBuffer({ resolveWithObject: true })
  const longest = Math.max(upright.info.width, upright.info.height)
  for (let side = longest; side === longest || side >= LEAST_SIDE; ) {
    const { data, info } = await encode(sharp(upright.data), { side, alpha: found.hasAlpha === true, longest })
    if (data.length <= limits.maxBytes) {
      const mimeType = info.format === 'png' ? 'image/png' : 'image/jpeg'
      const scaled = { width: info.width, height: info.height, mimeType, bytes: data.length }
      return { width, height, frames, scaled, body: data }
    }
    side = Math.floor(side * Math.max(SMALLEST, Math.min(SMALLER, Math.sqrt(limits.maxBytes / data.length))))
  }
  throw new Refused('too_large', `It cannot be made smaller than ${limits.maxBytes} bytes.`)
}

/** Finer at full size than where the limit of bytes has to be reached. */
function encode(image: Sharp, { side, alpha, longest }: { side: number; alpha: boolean; longest: number }) {
  const resized = image.resize({ width: side, height: side, fit: 'inside' })
  const made = alpha
    ? resized.png({ compressionLevel: 9, palette: side < longest })
    : resized.jpeg({ quality: side < longest ? 70 : 85 })
  return made.toBuffer({ resolveWithObject: true })
}

type Pdf = Awaited<ReturnType<typeof openPdf>>

/** Characters for what stands above a page's text. */
const PAGE_MARK_CHARS = 40
/** What the library says where it leaves something out. */
const NOT_DRAWN = /image|ignoring|not supported|surface/i

/** @param said gets what the library warns of; it would say that on standard output, which belongs to the answer. */
async function openPdf(bytes: Buffer, said: string[]) {
  const keep = (...words: unknown[]) => void said.push(words.join(' '))
  Object.assign(console, { log: keep, warn: keep })
  const { getDocument, VerbosityLevel } = await import('pdfjs-dist/legacy/build/pdf.mjs')
  const own = path.dirname(createRequire(import.meta.url).resolve('pdfjs-dist/package.json'))
  const folder = (name: string) => `${path.join(own, name)}${path.sep}`
  const task = getDocument({
    data: new Uint8Array(bytes),
    isEvalSupported: false,
    useSystemFonts: false,
    disableFontFace: true,
    enableXfa: false,
    verbosity: VerbosityLevel.WARNINGS,
    maxImageSize: MAX_PDF_IMAGE_PIXELS,
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

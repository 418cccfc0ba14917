import { readdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import sharp from 'sharp'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { OutcomeBlock } from '../../../src/lib/content.js'
import { createRead } from '../../../src/tools/files/read.js'
import { decode } from '../../../src/tools/media/decode.js'
import { pagesOf } from '../../../src/tools/media/pdf.js'
import { readMedia } from '../../../src/tools/media/read-media.js'
import type { ToolContext, ToolResult } from '../../../src/tools/tool.js'
import { openFile } from '../../../src/workspace/files.js'
import { readOpened } from '../../../src/workspace/read-file.js'
import { MAIN } from '../../helpers/host.js'
import { bmp, bombPng, pdf, pdfWithImage, SLOW_SVG } from '../../helpers/media-files.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'
import { createHarness, type Harness } from '../../processes/harness.js'

let harness: Harness
let sandbox: Sandbox

beforeAll(() => {
  harness = createHarness(join(dirname(MAIN), 'processes/launcher.js'))
})
afterAll(() => harness.close())
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const put = (name: string, bytes: Buffer | string) => writeFileSync(join(sandbox.root, name), bytes)
const context = (more: Partial<ToolContext> = {}) => sandbox.context({ processes: harness.processes, ...more })
const show = (path: string, args: Record<string, unknown> = {}, more: Partial<ToolContext> = {}): Promise<ToolResult> =>
  Promise.resolve(readMedia.run(context(more), readMedia.input.parse({ path, ...args })))
const words = (result: ToolResult) => result.content.flatMap((one) => (one.type === 'text' ? [one.text] : [])).join(' ')
const bytesOf = (block: OutcomeBlock | undefined) => Buffer.from(block?.type === 'image' ? block.data : '', 'base64')
const plain = (side: number, background = '#ff0000') =>
  sharp({ create: { width: side, height: side, channels: 3, background } })

it('MD-01 formats that clients do not show become JPEG or PNG, and what cannot be decoded is handed over as it is', async () => {
  put('a.tiff', await plain(20).tiff().toBuffer())
  put('a.avif', await plain(20).avif().toBuffer())
  put('cmyk.jpg', await plain(20).toColourspace('cmyk').jpeg().toBuffer())
  for (const name of ['a.tiff', 'a.avif', 'cmyk.jpg']) {
    const { content, facts } = await show(name)
    expect(facts, name).toMatchObject({ width: 20, height: 20, shown: { width: 20, height: 20, type: 'image/jpeg' } })
    const made = await sharp(bytesOf(content[0])).metadata()
    expect([made.format, made.space], name).toEqual(['jpeg', 'srgb'])
  }
  put('a.bmp', bmp())
  const { content } = await show('a.bmp')
  expect(content[0]).toMatchObject({
    type: 'resource',
    resource: { mimeType: 'image/bmp', blob: bmp().toString('base64') },
  })
})

it('MD-01 of an animation that has to be scaled the first frame is shown, and the answer says so', async () => {
  const frames = await Promise.all(['#ff0000', '#0000ff'].map((color) => plain(1700, color).png().toBuffer()))
  put(
    'large.gif',
    await sharp(frames, { join: { animated: true } })
      .gif()
      .toBuffer(),
  )
  const large = await show('large.gif')
  expect(words(large)).toMatch(/1700 × 1700 pixels, 2 frames.*of 1568 × 1568, only its first frame/)
  expect(large.facts).toMatchObject({ frames: 2, shown: { width: 1568, height: 1568 } })
  const small = await Promise.all(['#ff0000', '#0000ff'].map((color) => plain(20, color).png().toBuffer()))
  const whole = await sharp(small, { join: { animated: true } })
    .gif()
    .toBuffer()
  put('small.gif', whole)
  const shown = await show('small.gif')
  expect(bytesOf(shown.content[0]).equals(whole)).toBe(true)
  expect(words(shown)).not.toContain('first frame')
})

it('MD-01 an image comes below any limit of bytes that it can be brought below, and is refused otherwise', async () => {
  const noise = Buffer.alloc(300 * 300 * 4).map((_, index) => (index * 7919 * (index % 97)) % 251)
  put(
    'noise.png',
    await sharp(noise, { raw: { width: 300, height: 300, channels: 4 } })
      .png()
      .toBuffer(),
  )
  for (const inlineMedia of [100_000, 20_000, 2_000]) {
    const { content } = await show('noise.png', {}, { limits: { inlineText: 1000, inlineMedia } })
    const made = bytesOf(content[0])
    expect(made.length).toBeLessThanOrEqual(inlineMedia)
    expect((await sharp(made).metadata()).format).toBe('png')
  }
  const refused = await refusal(() => show('noise.png', {}, { limits: { inlineText: 1000, inlineMedia: 100 } }))
  expect([refused.code, refused.message]).toEqual([
    'too_large',
    'noise.png cannot be shown: It cannot be made smaller than 100 bytes.',
  ])
  // Smaller than the least side that anything is scaled to.
  put('dot.svg', '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="4" height="4"/></svg>')
  expect((await show('dot.svg')).facts).toMatchObject({ width: 4, shown: { width: 4, height: 4 } })
})

it('MD-01 a bomb of 30,000 × 30,000 pixels is refused before it is decoded', async () => {
  const bomb = bombPng(30_000)
  expect(bomb.length).toBeLessThan(1_000_000)
  put('bomb.png', bomb)
  const refused = await refusal(() => show('bomb.png'))
  expect([refused.code, refused.message]).toEqual([
    'too_large',
    'bomb.png cannot be shown: It is 30000 × 30000 pixels; more than 100000000 are not opened.',
  ])
  // The same file, smaller, is an image.
  put('fine.png', bombPng(300))
  expect((await show('fine.png')).facts).toMatchObject({ type: 'image/png', width: 300, height: 300 })
})

it('MD-01 a file that begins like SVG, over and over, does not hold up the host, and SVG is known behind its long introduction', async () => {
  // A pattern that can take each comment in two ways would need minutes here, and twice that for each one more.
  put('knots.svg', `${'<!---->'.repeat(30)}x`)
  const before = performance.now()
  expect((await refusal(() => show('knots.svg'))).message).toBe('knots.svg is text.')
  expect(performance.now() - before).toBeLessThan(2000)
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="6"><rect width="8" height="6"/></svg>'
  const type = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
  put('drawn.txt', `\ufeff<?xml version="1.0"?>\n<!-- ${'by a program '.repeat(200)} -->\n${type}\n${svg}`)
  expect((await show('drawn.txt')).facts).toMatchObject({ type: 'image/svg+xml', width: 8, height: 6 })
  for (const other of ['<!-- no end <svg>', '<?xml no end <svg>', '<svgs>', '<html><svg></svg></html>', '']) {
    put('other.svg', other)
    expect((await refusal(() => show('other.svg'))).message, other).toBe('other.svg is text.')
  }
})

it('MD-01 FI-05 a file that changes while it is read is refused: neither its old nor its new content would be whole', () => {
  put('a.bin', Buffer.alloc(100, 1))
  for (const change of [() => put('a.bin', Buffer.alloc(100, 2)), () => put('a.bin', Buffer.alloc(50, 3))]) {
    const file = openFile(context().workspace, 'a.bin')
    try {
      expect(readOpened(file, 1000)).toEqual(Buffer.alloc(100, 1))
      change()
      expect(() => readOpened(file, 1000)).toThrow('"a.bin" was changed by something else while it was read.')
    } finally {
      file.close()
      put('a.bin', Buffer.alloc(100, 1))
    }
  }
})

it('MD-01 FI-03 ReadMedia and Read agree about what is text, so that neither sends to the other in a circle', async () => {
  const binary = Buffer.from(Array.from({ length: 5000 }, (_, index) => 1 + ((index * 89) % 255)))
  put('noise.bin', binary)
  expect((await runTool(createRead(), context(), { path: 'noise.bin' })).facts).toMatchObject({ binary: true })
  expect((await show('noise.bin')).facts).toMatchObject({ type: 'application/octet-stream', bytes: 5000 })
  put('wide.txt', Buffer.from('\ufeffwide text', 'utf16le'))
  put('plain.txt', 'plain')
  for (const name of ['wide.txt', 'plain.txt']) {
    const refused = await refusal(() => show(name))
    expect([refused.code, refused.message, refused.hint]).toEqual([
      'invalid_arguments',
      `${name} is text.`,
      'Read shows it.',
    ])
  }
})

it('MD-01 PA-02 PA-03 files of more than 64 MiB, links out and the home are refused', async () => {
  put('huge.mp4', Buffer.from('\0\0\0\x18ftypisom'))
  truncateSync(join(sandbox.root, 'huge.mp4'), 64 * 1024 * 1024 + 1)
  const large = await refusal(() => show('huge.mp4'))
  expect([large.code, large.message]).toEqual([
    'too_large',
    '"huge.mp4" has 67108865 bytes; at most 67108864 are read at once.',
  ])
  writeFileSync(join(sandbox.out, 'secret.png'), await plain(5).png().toBuffer())
  symlinkSync(join(sandbox.out, 'secret.png'), join(sandbox.root, 'link.png'))
  writeFileSync(join(sandbox.home, 'own.png'), await plain(5).png().toBuffer())
  for (const path of ['link.png', join(sandbox.home, 'own.png')])
    expect((await refusal(() => show(path))).code, path).toBe('path_denied')
})

it('GU-13 MD-01 a reference that is malformed, unknown or too large is refused before anything is read', async () => {
  const asked: string[] = []
  const savedPart: ToolContext['savedPart'] = (id, part) => {
    asked.push(`${id}/${part}`)
    const read = () => {
      throw new Error('nobody reads that much')
    }
    return id === 'op_large' ? { length: 64 * 1024 * 1024 + 1, read } : undefined
  }
  for (const path of ['kiki-file://', 'kiki-file://op_none/0', 'kiki-file://../../x']) {
    const refused = await refusal(() => show(path, {}, { savedPart }))
    expect([refused.code, refused.message]).toEqual(['not_found', `There is no ${path} in this session.`])
    expect(readMedia.targets?.({ path })).toEqual([])
  }
  const large = await refusal(() => show('kiki-file://op_large/3', {}, { savedPart }))
  expect([large.code, large.hint]).toEqual([
    'too_large',
    'kiki_operation {"action":"read","operation_id":"op_large","part":3} pages it.',
  ])
  expect(asked).toContain('op_large/3')
})

it('FI-05 Read and ReadMedia show whole pages of a PDF that fit, and say how to go on', async () => {
  // Eight rows of 40 characters a page.
  const rows = (page: number) => Array(8).fill(`${page}`.repeat(40)).join(') Tj 0 -30 Td (')
  put('long.pdf', pdf(Array.from({ length: 9 }, (_, index) => rows(index + 1))))
  const limits = { inlineText: 1200, inlineMedia: 1000 }
  const first = await show('long.pdf', {}, { limits })
  expect(first.facts).toMatchObject({ pages: 9, from: 1, to: 2 })
  expect(words(first)).toContain('"pages": "3-9" goes on.')
  expect(words(first).length).toBeLessThanOrEqual(1200)
  expect((await show('long.pdf', { pages: '8-99' }, { limits })).facts).toMatchObject({ from: 8, to: 9 })

  const read = (args: Record<string, unknown>, more = {}) =>
    runTool(createRead(), context(more), { path: 'long.pdf', ...args })
  const begun = await read({}, { limits })
  expect(begun.facts).toMatchObject({ type: 'application/pdf', pages: 9, from: 1, to: 2 })
  expect(begun.text).toMatch(/Next: offset 3; offset and limit count pages\. ReadMedia with "as": "images" shows/)
  expect((await read({ offset: 4, limit: 2 })).facts).toMatchObject({ from: 4, to: 5 })
  expect((await read({ offset: -2 })).facts).toMatchObject({ from: 8, to: 9 })
  expect((await read({ offset: -50, limit: 1 })).facts).toMatchObject({ from: 1, to: 1 })
  const past = await refusal(() => read({ offset: 10 }))
  expect([past.code, past.message]).toEqual([
    'invalid_arguments',
    'long.pdf cannot be shown: It has 9 pages; there is no page 10.',
  ])
})

it('FI-05 page images say where something of the page could not be drawn', async () => {
  put('whole.pdf', pdfWithImage(50))
  expect((await show('whole.pdf', { as: 'images' })).facts).not.toHaveProperty('incomplete')
  put('broken.pdf', pdfWithImage(50, { filter: 'DCTDecode', bytes: Buffer.from('no JPEG') }))
  // It would take gigabytes to decode.
  put('large.pdf', pdfWithImage(20_000, { filter: 'FlateDecode', bytes: Buffer.from('x\x9c') }))
  for (const name of ['broken.pdf', 'large.pdf']) {
    const shown = await show(name, { as: 'images' })
    expect(shown.facts, name).toMatchObject({ incomplete: [1] })
    expect(words(shown), name).toContain('Something on these pages could not be drawn and is missing: 1.')
  }
})

it('FI-05 what names no pages is refused', () => {
  expect(pagesOf(undefined, 7)).toEqual({ first: 1, most: 7 })
  expect(pagesOf('3', 7)).toEqual({ first: 3, most: 1 })
  expect(pagesOf('3-20', 7)).toEqual({ first: 3, most: 7 })
  for (const wrong of ['', '0', '3-2', '1,2', '-1', ' 1', '1-', '9999999'])
    expect(() => pagesOf(wrong, 7), wrong).toThrow('names no pages')
})

it('MD-01 a decoder that takes too long, or more memory than it may have, is ended; nothing is left of it', async () => {
  const own = context()
  const limits = { ms: 60_000, memoryMb: 2048 }
  const image = { do: 'image', maxBytes: 1_000_000, maxPixels: 1568 } as const
  const slow = await refusal(() => decode(own, 'slow.svg', Buffer.from(SLOW_SVG), image, { ...limits, ms: 1500 }))
  expect([slow.code, slow.message]).toEqual(['timeout', 'slow.svg took longer than 1.5 s to decode; that was ended.'])
  const page = { do: 'pdf_images', first: 1, most: 1, maxBytes: 1_000_000, maxPixels: 1568 } as const
  const bytes = pdfWithImage(5000)
  const decoded = await decode(own, 'big.pdf', bytes, page, limits)
  expect(decoded.head).toMatchObject({ images: [{ incomplete: false }] })
  const big = await refusal(() => decode(own, 'big.pdf', bytes, page, { ...limits, memoryMb: 160 }))
  expect([big.code, big.message]).toEqual([
    'too_large',
    'big.pdf cannot be shown: its decoder ended without an answer.',
  ])
  expect(readdirSync(own.scratch)).toEqual([])
})

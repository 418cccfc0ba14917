import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type CallResult, connectClient, type TestClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { bombPng, pdf, SLOW_SVG } from '../helpers/media-files.js'
import { factsOf, operationOf, textOf } from './command-bench.js'

let host: TestHost
let client: TestClient
let connection: string
let session: string

beforeAll(async () => {
  host = await startHost()
  connection = await host.connection({ tools: ['files', 'media'] })
  session = await host.session(connection)
  client = await connectClient(host, connection, 'v2 2026-07-28', { session })
})
afterAll(async () => {
  await client.close()
  await host.stop()
})

const put = (name: string, bytes: Buffer | string) => writeFileSync(join(host.workspace, name), bytes)
const show = (path: string, args: Record<string, unknown> = {}) => client.call('ReadMedia', { path, ...args })
const imageIn = (result: CallResult, index = 0) => Buffer.from(result.content[index]?.data ?? '', 'base64')

/** All pages of a saved part, put together. */
async function paged(operation_id: string, part: number): Promise<Buffer> {
  const pages: Buffer[] = []
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page = await client.call('kiki_operation', { action: 'read', operation_id, part, offset, limit: 100_000 })
    pages.push(Buffer.from(page.content[0]?.resource?.blob ?? '', 'base64'))
    const facts = factsOf(page) as { next?: { arguments: { offset: number } } }
    offset = facts.next?.arguments.offset
  }
  return Buffer.concat(pages)
}

it('MD-01 a small image is shown as it is, by its content and not its name', async () => {
  const png = await sharp({ create: { width: 40, height: 30, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  put('lies.jpg', png)
  const shown = await show('lies.jpg')
  expect(shown.content[0]).toMatchObject({ type: 'image', mimeType: 'image/png' })
  expect(imageIn(shown).equals(png)).toBe(true)
  expect(factsOf(shown)).toMatchObject({ type: 'image/png', width: 40, height: 30, bytes: png.length })
})

it('MD-01 FC-R08 a large image is scaled down and says so; its original is kept, paged, and shown again by its reference', async () => {
  const noise = Buffer.alloc(2000 * 1500 * 3, 0).map((_, index) => (index * 7919) % 251)
  const original = await sharp(noise, { raw: { width: 2000, height: 1500, channels: 3 } })
    .png({ compressionLevel: 0 })
    .toBuffer()
  put('large.png', original)
  const shown = await show('large.png')
  const image = imageIn(shown)
  expect(image.length).toBeLessThanOrEqual(1_048_576)
  const made = await sharp(image).metadata()
  expect(Math.max(made.width, made.height)).toBeLessThanOrEqual(1568)
  expect(textOf(shown)).toContain('2000 × 1500')
  expect(textOf(shown)).toContain(`${made.width} × ${made.height}`)
  const { operation_id } = operationOf(shown)
  put('large.png', 'gone')
  expect((await paged(operation_id, 2)).equals(original)).toBe(true)
  const reference = factsOf(shown).original as string
  expect(reference).toBe(`kiki-file://${operation_id}/2`)
  expect(factsOf(await show(reference))).toMatchObject({ width: 2000, height: 1500 })
  expect((await paged(operationOf(await show(reference)).operation_id, 2)).equals(original)).toBe(true)
})

it('MD-01 GU-13 OP-15 a reference holds as long as it is named, in its own session only', async () => {
  const archive = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), Buffer.alloc(900, 5)])
  put('small.zip', archive)
  const shown = await show('small.zip')
  const reference = factsOf(shown).original as string
  expect(shown.content[0]?.resource).toEqual({
    uri: reference,
    mimeType: 'application/zip',
    blob: archive.toString('base64'),
  })
  rmSync(join(host.workspace, 'small.zip'))
  expect((await paged(operationOf(shown).operation_id, 0)).equals(archive)).toBe(true)
  expect((await show(reference)).content[0]?.resource?.blob).toBe(archive.toString('base64'))

  const unknown = 'kiki-file://op_000000000000/0'
  const foreign = await host.connection({ tools: ['files', 'media'] })
  for (const [who, ref] of [
    [connection, await host.session(connection)],
    [foreign, await host.session(foreign)],
  ] as const) {
    const other = await connectClient(host, who, 'v2 auto', { session: ref })
    const refused = await other.call('ReadMedia', { path: reference })
    expect(textOf(refused)).toBe(
      `not_found: There is no ${reference} in this session. References hold as long as their operation is kept.`,
    )
    expect(textOf(await other.call('ReadMedia', { path: unknown }))).toBe(textOf(refused).replace(reference, unknown))
    await other.close()
  }
})

it('MD-01 a turned photograph is shown upright and without its place', async () => {
  const photo = await sharp({ create: { width: 60, height: 20, channels: 3, background: 'blue' } })
    .withExif({ IFD0: { ImageDescription: 'secret place' } })
    .withMetadata({ orientation: 6 })
    .jpeg()
    .toBuffer()
  put('turned.jpg', photo)
  const shown = await show('turned.jpg')
  expect(factsOf(shown)).toMatchObject({ width: 20, height: 60 })
  const made = await sharp(imageIn(shown)).metadata()
  expect([made.width, made.height, made.orientation ?? 1, made.exif]).toEqual([20, 60, 1, undefined])
})

it('MD-01 hostile images are refused, and the host goes on', async () => {
  put('bomb.png', bombPng(30_000))
  expect(textOf(await show('bomb.png'))).toMatch(/^too_large: bomb\.png cannot be shown: It is 30000 × 30000 pixels/)
  const whole = await sharp({ create: { width: 3000, height: 3000, channels: 3, background: 'white' } })
    .png()
    .toBuffer()
  put('torn.png', whole.subarray(0, whole.length / 2))
  expect(textOf(await show('torn.png'))).toMatch(/cannot be shown/)
  put('not.png', Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100, 7)]))
  expect(textOf(await show('not.png'))).toMatch(/^invalid_arguments: not\.png cannot be shown/)
  put(
    'draw.svg',
    '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><image href="file:///etc/passwd"/><rect width="10" height="10" fill="red"/></svg>',
  )
  expect((await show('draw.svg')).content[0]).toMatchObject({ type: 'image', mimeType: 'image/png' })
})

it('FI-05 MD-01 a PDF is text by pages, and images on request; encrypted, broken and missing pages are named', async () => {
  put('doc.pdf', pdf(['Hello first', 'Hello second', 'Hello third']))
  const whole = await show('doc.pdf')
  expect(textOf(whole)).toMatch(
    /\[page 1 of 3\]\nHello first\n\n\[page 2 of 3\]\nHello second\n\n\[page 3 of 3\]\nHello third/,
  )
  expect(factsOf(whole)).toMatchObject({ pages: 3 })
  expect(textOf(await client.call('Read', { path: 'doc.pdf' }))).toContain('[page 2 of 3]\nHello second')
  const some = await show('doc.pdf', { pages: '2-3' })
  expect(textOf(some)).not.toContain('first')
  const images = await show('doc.pdf', { pages: '1-2', as: 'images' })
  expect(images.content.map(({ type }) => type)).toEqual(['image', 'image', 'text'])
  const page = await sharp(imageIn(images)).stats()
  // Something is written on white paper.
  expect(page.channels[0]?.min).toBeLessThan(100)
  expect(page.channels[0]?.mean).toBeGreaterThan(200)
  expect(textOf(await show('doc.pdf', { pages: '9' }))).toMatch(/^invalid_arguments: .*there is no page 9/)
  put('broken.pdf', '%PDF-1.4\nnothing\n')
  expect(textOf(await show('broken.pdf'))).toMatch(/^invalid_arguments: broken\.pdf cannot be shown/)
  put(
    'locked.pdf',
    pdf(
      ['x'],
      '/Encrypt << /Filter /Standard /V 1 /R 2 /O (12345678901234567890123456789012) /U (12345678901234567890123456789012) /P -4 >> /ID [(a) (b)] ',
    ),
  )
  expect(textOf(await show('locked.pdf'))).toMatch(/^invalid_arguments: .*encrypted/)
})

it('MD-01 a file whose beginning is made to puzzle a pattern is looked at once, and an SVG behind much is one', async () => {
  put('puzzle.bin', Buffer.concat([Buffer.from('<!---->'.repeat(70)), Buffer.alloc(1000)]))
  const began = performance.now()
  expect(factsOf(await show('puzzle.bin'))).toMatchObject({ type: 'application/octet-stream' })
  expect(performance.now() - began).toBeLessThan(5000)
  put(
    'late.svg',
    '<?xml version="1.0"?>\n<!-- a > b --> <!-- c -->\n<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>',
  )
  expect((await show('late.svg')).content[0]).toMatchObject({ type: 'image', mimeType: 'image/png' })
})

it('MD-01 audio is audio, other files are resources, text is for Read, and what is no regular file is named', async () => {
  const wav = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(40)])
  put('a.wav', wav)
  expect((await show('a.wav')).content[0]).toMatchObject({
    type: 'audio',
    mimeType: 'audio/wav',
    data: wav.toString('base64'),
  })
  const zip = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), Buffer.alloc(3_000_000, 5)])
  put('big.zip', zip)
  const big = await show('big.zip')
  expect(textOf(big)).toContain('3000004 bytes of media are left out here')
  expect((await paged(operationOf(big).operation_id, 0)).equals(zip)).toBe(true)
  put('t.txt', 'text')
  expect(textOf(await show('t.txt'))).toBe('invalid_arguments: t.txt is text. Read shows it.')
  const long = Buffer.concat([wav, Buffer.alloc(2_000_000, 3)])
  put('long.wav', long)
  const cut = await show('long.wav')
  expect(cut.content.map(({ type }) => type)).toEqual(['text', 'text'])
  const reference = factsOf(cut).original as string
  expect(textOf(cut)).toContain(reference)
  expect((await paged(operationOf(cut).operation_id, 0)).equals(long)).toBe(true)
  expect(factsOf(await show(reference))).toMatchObject({ type: 'audio/wav', bytes: long.length })
  execFileSync('mkfifo', [join(host.workspace, 'fifo')])
  expect((await show('fifo')).isError).toBe(true)
  expect(readFileSync(join(host.workspace, 'a.wav')).equals(wav)).toBe(true)
})

it('MD-01 OP-12 a cancelled call ends its decoder and leaves nothing of it', async () => {
  put('slow.svg', SLOW_SVG)
  const scratch = join(host.home, 'run', 'scratch')
  const decoders = () =>
    execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(scratch))
  const cancel = new AbortController()
  const call = client.call('ReadMedia', { path: 'slow.svg' }, { signal: cancel.signal })
  const ended = expect(call).rejects.toThrow()
  await vi.waitFor(() => expect(decoders()).not.toEqual([]), { timeout: 20_000, interval: 20 })
  cancel.abort()
  await ended
  await vi.waitFor(() => expect([decoders(), readdirSync(scratch)]).toEqual([[], []]), {
    timeout: 10_000,
    interval: 20,
  })
})

it('MD-01 what a killed host was decoding is gone when it runs again', async () => {
  const killed = await startHost()
  try {
    const own = await killed.connection({ tools: ['media'] })
    // Its bridge would start a host of its own beside the one that the test starts.
    const options = { session: await killed.session(own), quiet: true, args: ['--no-start'] }
    const other = await connectClient(killed, own, 'v2 auto', options)
    writeFileSync(join(killed.workspace, 'slow.svg'), SLOW_SVG)
    const scratch = join(killed.home, 'run', 'scratch')
    const stop = new AbortController()
    const ended = expect(other.call('ReadMedia', { path: 'slow.svg' }, { signal: stop.signal })).rejects.toThrow()
    await vi.waitFor(() => expect(readdirSync(scratch)).toHaveLength(1), { timeout: 20_000, interval: 20 })
    await killed.kill()
    stop.abort()
    await ended
    await other.close()
    expect(readdirSync(scratch)).toHaveLength(1)
    await killed.restart()
    expect(existsSync(scratch)).toBe(false)
  } finally {
    await killed.stop()
  }
})

it('MD-01 GR-03 an observer has ReadMedia', async () => {
  const observer = await host.connection({ tools: ['files', 'search', 'media'], ceiling: 'read-only' })
  const other = await connectClient(host, observer, 'v2 auto', { session: await host.session(observer) })
  expect(await other.tools()).toContain('ReadMedia')
  await other.close()
})

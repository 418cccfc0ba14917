import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ContentBlock, NextCall, Reply } from '../../src/lib/content.js'
import { readPage } from '../../src/operations/pages.js'
import { type Core, openCore } from './harness.js'

let core: Core

beforeEach(async () => {
  core = await openCore()
})
afterEach(() => core.close())

let keys = 0
const LIMITS = { text: 24_000, media: 1_048_576 }

/** Saves a result and returns its row and its inline answer. */
async function save(content: ContentBlock[]) {
  const claim = await core.operations.claim(core.request(`key ${keys++}`))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  await core.operations.run(claim.live, async () => ({ content }))
  const reply = await core.operations.answer(claim.live, 0, LIMITS)
  const row = await core.operations.find(core.connection.id, claim.live.id)
  return { row, reply }
}

/** All pages of one part, following only `next`. */
function pages(row: Awaited<ReturnType<typeof save>>['row'], part: number, limit: number): Reply[] {
  const found: Reply[] = []
  let at: { part: number; offset: number; limit: number } | undefined = { part, offset: 0, limit }
  while (at !== undefined) {
    const page: Reply = readPage(core.operations.sources, row, at)
    found.push(page)
    const { next } = page._meta['kiki/result'] as { next?: NextCall }
    if (next !== undefined)
      expect(next).toMatchObject({ tool: 'kiki_operation', arguments: { action: 'read', operation_id: row.id } })
    at = next?.arguments as typeof at
  }
  return found
}

it('OP-14 pages of any text are the text: surrogate pairs stay whole, lone surrogates survive', async () => {
  const unit = fc.constantFrom('a', 'é', '😀', '\ud83d', '\ude00', '\n', '\u0000', '\u2028')
  await fc.assert(
    fc.asyncProperty(
      fc.array(unit, { maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      fc.boolean(),
      async (units, limit, large) => {
        // Above 8,192 characters a part lies in chunks of its own.
        const text = units.join('') + (large ? `${'😀'.repeat(5000)}\ud83d` : '')
        const { row } = await save([{ type: 'text', text }])
        const found = pages(row, 0, large ? limit * 997 : limit)
        const texts = found.map((page) => (page.structuredContent as { text: string }).text)
        expect(texts.join('') === text).toBe(true)
        for (const [i, one] of texts.entries()) {
          expect(found[i]?.content).toEqual([{ type: 'text', text: one }])
          // No cut between the halves of a pair.
          const pair = /[\ud800-\udbff]$/.test(one) && /^[\udc00-\udfff]/.test(texts[i + 1] ?? '')
          expect(pair).toBe(false)
        }
        expect(found.at(-1)?.structuredContent).not.toHaveProperty('next')
      },
    ),
    { numRuns: 60 },
  )
})

it('OP-14 media are paged by bytes as base64 resource chunks', async () => {
  const bytes = Buffer.from(Array.from({ length: 300_001 }, (_, i) => (i * 31) % 251))
  const blob = bytes.toString('base64')
  const { row } = await save([
    { type: 'text', text: 'before' },
    { type: 'image', data: blob, mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'file:///x', mimeType: 'application/pdf', blob } },
  ])
  for (const [part, mimeType] of [
    [1, 'image/png'],
    [2, 'application/pdf'],
  ] as const) {
    const found = pages(row, part, 100_000)
    const chunks = found.map((page) => {
      const [block] = page.content
      if (block?.type !== 'resource' || !('blob' in block.resource)) throw new Error('no chunk')
      expect(block.resource.mimeType).toBe(mimeType)
      return Buffer.from(block.resource.blob, 'base64')
    })
    expect(chunks.map((chunk) => chunk.length)).toEqual([100_000, 100_000, 100_000, 1])
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    expect(found[0]).not.toHaveProperty('structuredContent')
    // What a model sees of the facts: a ready call beside each chunk but the last.
    const second = { action: 'read', operation_id: row.id, part, offset: 100_000, limit: 100_000 }
    const text = `The next page: kiki_operation ${JSON.stringify(second)}`
    expect(found.map((page) => page.content.length)).toEqual([2, 2, 2, 1])
    expect(found[0]?.content[1]).toEqual({ type: 'text', text })
  }
})

it('OP-13 media over the limit are left out with their exact size and a ready call; text beside them stays', async () => {
  const small = Buffer.alloc(1000, 1).toString('base64')
  const large = Buffer.alloc(1_048_577, 2).toString('base64')
  const { row, reply } = await save([
    { type: 'text', text: 'words' },
    { type: 'image', data: small, mimeType: 'image/png' },
    { type: 'audio', data: large, mimeType: 'audio/wav' },
  ])
  const next = { tool: 'kiki_operation', arguments: { action: 'read', operation_id: row.id, part: 2, offset: 0 } }
  expect(reply.content.slice(0, 2)).toEqual([
    { type: 'text', text: 'words' },
    { type: 'image', data: small, mimeType: 'image/png' },
  ])
  expect(reply.content[2]).toEqual({
    type: 'text',
    text: expect.stringContaining(
      `[1048577 bytes of media are left out here. Page them with kiki_operation ${JSON.stringify(next.arguments)}`,
    ),
  })
  expect(reply._meta['kiki/operation']).toMatchObject({ next })
  expect(reply).not.toHaveProperty('structuredContent')
  // Replays cut alike, and the saved media are whole.
  expect(core.operations.replay(row, LIMITS).content.slice(1)).toEqual(reply.content)
  const again = core.operations.replay(row, { text: 24_000, media: 10_000_000 })
  expect(again.content[3]).toEqual({ type: 'audio', data: large, mimeType: 'audio/wav' })
})

it('OP-13 text at the limit is whole; one character more is head, marker and tail, with no pair cut', async () => {
  const exact = '😀'.repeat(12_000)
  expect((await save([{ type: 'text', text: exact }])).reply.content).toEqual([{ type: 'text', text: exact }])
  const { reply, row } = await save([{ type: 'text', text: `${exact}.` }])
  const [block] = reply.content
  if (block?.type !== 'text') throw new Error('no text')
  const [, head = '', left, tail = ''] =
    /^([^\n]*)\n\[… (\d+) of 24001 characters .*…\]\n([^\n]*)$/.exec(block.text) ?? []
  expect(head.length + tail.length + Number(left)).toBe(24_001)
  expect(`${exact}.`.startsWith(head) && `${exact}.`.endsWith(tail)).toBe(true)
  expect(block.text).not.toMatch(/\p{Surrogate}/u)
  expect(reply._meta['kiki/operation']).toMatchObject({
    next: { arguments: { operation_id: row.id, part: 0, offset: head.length } },
  })
})

import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ContentBlock, OutcomeBlock } from '../../src/lib/content.js'
import { encodeOutcome } from '../../src/operations/outcome.js'
import { readPage } from '../../src/operations/pages.js'
import type { OperationRow } from '../../src/store/operations.js'
import type { Store } from '../../src/store/store.js'
import { ENDING, operation, storeHome } from '../store/home.js'

let home: ReturnType<typeof storeHome>
let store: Store
beforeAll(() => {
  home = storeHome()
  store = home.open()
})
afterAll(() => {
  store.close()
  home.remove()
})

let last = 0
/** Saves a result as an operation's end does. */
function saved(content: OutcomeBlock[]): OperationRow {
  const id = `op_page_${++last}`
  const { result, chars, parts } = encodeOutcome({ status: 'completed', content })
  store.operations.insert(operation(id))
  store.operations.end(id, { ...ENDING, status: 'completed', result, result_chars: chars })
  for (const { part, body } of parts) store.results.insert(id, part, body)
  const row = store.operations.get(id)
  if (row === undefined) throw new Error('not saved')
  return row
}

/** Follows only the calls that each page gives for the next. */
function pages(row: OperationRow, part: number, limit: number) {
  const replies = []
  let offset: number | undefined = 0
  while (offset !== undefined) {
    const reply = readPage({ results: store.results, outputs: { saved: () => undefined } }, row, {
      part,
      offset,
      limit,
    })
    const facts = reply._meta['kiki/result'] as {
      length: number
      next?: { arguments: { offset: number; limit: number } }
    }
    replies.push(reply)
    const next: number | undefined = facts.next?.arguments.offset
    if (next !== undefined) expect(next).toBe(offset + facts.length)
    if (next !== undefined) expect(next).toBeGreaterThan(offset)
    offset = next
  }
  return replies
}

/** Texts with whole and half surrogate pairs; long ones lie in chunks of 65,536 units beside the row. */
const unit = fc.constantFrom('a', 'é', '\n', '\0', '\ud83d\ude00', '\ud83d', '\ude00', '\u2028', '\ufeff')
const text = fc
  .tuple(fc.string({ unit, maxLength: 60 }), fc.constantFrom(1, 1, 200, 4000))
  .map(([value, times]) => value.repeat(times))

it('OP-14 FC-R01 pages of any limit put together are the text, and none splits a pair', () => {
  fc.assert(
    fc.property(
      text,
      fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1000, max: 256_000 })),
      (value, limit) => {
        const most = Math.max(limit, Math.ceil(value.length / 200))
        const replies = pages(saved([{ type: 'text', text: value }]), 0, most)
        const texts = replies.map((reply) => (reply.structuredContent as { text: string }).text)
        expect(texts.join('') === value).toBe(true)
        texts.slice(1).forEach((page, index) => {
          const joint = (texts[index] ?? '').slice(-1) + page.slice(0, 1)
          expect(/^[\ud800-\udbff][\udc00-\udfff]$/.test(joint)).toBe(false)
        })
      },
    ),
    { numRuns: 200 },
  )
})

it('OP-14 chunks of media of any limit put together are its bytes, whatever the block that holds it', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ minLength: 1, maxLength: 90 }).map((some) => {
      return Buffer.concat(Array.from({ length: 3000 }, () => some))
    }),
  )
  fc.assert(
    fc.property(
      bytes,
      fc.integer({ min: 1, max: 256_000 }),
      fc.constantFrom('image', 'audio', 'resource'),
      (value, limit, type) => {
        const data = Buffer.from(value).toString('base64')
        const block: ContentBlock =
          type === 'resource'
            ? { type, resource: { uri: 'x:y', blob: data } }
            : { type: type as 'image' | 'audio', data, mimeType: 'image/png' }
        const replies = pages(
          saved([{ type: 'text', text: 'first' }, block]),
          1,
          Math.max(limit, Math.ceil(value.length / 200)),
        )
        const blobs = replies.map(({ content: [page] }) =>
          page?.type === 'resource' && 'blob' in page.resource ? page.resource.blob : '?',
        )
        expect(Buffer.concat(blobs.map((blob) => Buffer.from(blob, 'base64'))).equals(Buffer.from(value))).toBe(true)
      },
    ),
    { numRuns: 100 },
  )
})

it('OP-14 bytes of a command that had to go for newer output are said to be gone, never an empty page', () => {
  const read = () => Buffer.alloc(0)
  const row = saved([
    { type: 'text', text: 'ended' },
    { type: 'kept', mimeType: 'application/octet-stream', length: 5000, read, output: true },
  ])
  const [page, ...more] = pages(row, 1, 1000)
  expect(more).toEqual([])
  expect(page?.content).toEqual([
    {
      type: 'text',
      text: '[The output (5000 bytes) is not kept any more: newer output took its place, see storage.total_output_mb.]',
    },
  ])
})

import { expect, it } from 'vitest'
import type { LongText } from '../../src/lib/content.js'
import { ended } from '../../src/operations/present.js'

const LIMITS = { text: 24_000, media: 1_000_000 }
const long = (text: string): LongText => ({
  type: 'long_text',
  length: text.length,
  read: (start, end) => text.slice(start, end),
})
const shown = (content: Parameters<typeof ended>[1]['content']) =>
  ended({ operationId: 'op_1', sessionRef: 'ext_1' }, { status: 'completed', content }, LIMITS).content.map((block) =>
    block.type === 'text' ? block.text : block.type,
  )

it('OP-13 SH-01 how a command ended is shown whole, however long its output is', () => {
  const text = `head ${'x'.repeat(100_000)} tail`
  const [output = '', end] = shown([long(text), { type: 'text', text: 'Exit code 0 after 3 ms.' }])
  expect(output.startsWith('head x')).toBe(true)
  expect(output.endsWith('x tail')).toBe(true)
  expect(output.length).toBeLessThan(24_400)
  expect(end).toBe('Exit code 0 after 3 ms.')
})

it('OP-13 a head and a tail never split a pair, wherever they are cut', () => {
  for (const lead of ['', 'a']) {
    const [output = ''] = shown([long(lead + '\u{1f600}'.repeat(30_000))])
    expect(
      output.isWellFormed?.() ?? !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(output),
    ).toBe(true)
  }
})

it('MD-01 what is kept beside a result is never sent, and makes it saved', () => {
  const kept = { type: 'kept' as const, mimeType: 'image/png', length: 3, read: () => Buffer.from('abc') }
  expect(shown([{ type: 'text', text: 'shown' }, kept])).toEqual(['shown'])
})

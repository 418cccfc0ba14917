import fc from 'fast-check'
import { expect, it } from 'vitest'
import { visible } from '../../src/lib/visible.js'

it.each([
  ['plain, with\ttabs and\nlines – é 漢 😀', 'plain, with\ttabs and\nlines – é 漢 😀'],
  ['a\u202eb', 'a\\u{202e}b'],
  ['a\\u{202e}b', 'a\\u{5c}u{202e}b'],
  ['\u001b[2J', '\\u{1b}[2J'],
  ['\r\n', '\\u{d}\n'],
  ['zero\u200bwidth\ufeff', 'zero\\u{200b}width\\u{feff}'],
  ['\u2028\u2029\u0085', '\\u{2028}\\u{2029}\\u{85}'],
  ['tag\u{e0041}', 'tag\\u{e0041}'],
  ['half \ud800', 'half \\u{d800}'],
  ['C:\\users', 'C:\\users'],
])('GU-32 %j is shown as %j', (text, shown) => {
  expect(visible(text)).toBe(shown)
})

it('GU-32 two texts that differ are never shown alike', () => {
  const back = (shown: string) =>
    shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
  const odd = fc.string({ unit: fc.constantFrom('\\', 'u', '{', '}', '5', 'c', '\u202e', 'x', '\u0000') })
  fc.assert(
    fc.property(fc.oneof(odd, fc.string({ unit: 'binary' })), (text) => {
      expect(back(visible(text))).toBe(text)
    }),
  )
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { safeCut } from '../../src/lib/content.js'

it('a cut never splits a surrogate pair, and moves back by one at most', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: -3, max: 40 }), (text, end) => {
      const cut = safeCut(text, end)
      const wanted = Math.max(0, Math.min(end, text.length))
      expect(wanted - cut).toBeGreaterThanOrEqual(0)
      expect(wanted - cut).toBeLessThanOrEqual(1)
      expect(Buffer.from(text.slice(0, cut)).toString()).toBe(text.slice(0, cut))
      expect(Buffer.from(text.slice(cut)).toString()).toBe(text.slice(cut))
    }),
  )
  expect(safeCut('a😀b', 2)).toBe(1)
  expect(safeCut('a😀b', 3)).toBe(3)
})

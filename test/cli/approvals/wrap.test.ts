import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GUTTER, GUTTER_ON } from '../../../src/cli/approvals/words.js'
import { clipped, columnsOf, wrapLines } from '../../../src/cli/approvals/wrap.js'

const text = fc.string({ unit: fc.constantFrom('a', ' ', 'é', '語', '😀', '-', '⇥'), maxLength: 200 })

describe('lines for a narrow screen', () => {
  it('AP-03 what a client sent is broken anywhere and nothing of it is lost', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 12, max: 80 }), (given, width) => {
        const pieces = wrapLines([{ lead: GUTTER, text: given, tone: 'plain' }], width)
        expect(pieces.map((piece) => piece.text).join('')).toBe(given)
        expect(pieces.map(({ lead }) => lead)).toEqual([GUTTER, ...pieces.slice(1).map(() => GUTTER_ON)])
        for (const piece of pieces) expect(columnsOf(piece.lead + piece.text)).toBeLessThanOrEqual(width)
      }),
    )
  })

  it("AP-03 Kiki's own words are broken between words, and none is lost", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 20, max: 80 }), (given, width) => {
        const pieces = wrapLines([{ lead: 'Label      ', text: given, tone: 'plain' }], width)
        expect(
          pieces
            .map((piece) => piece.text)
            .join('')
            .replaceAll(' ', ''),
        ).toBe(given.replaceAll(' ', ''))
        for (const piece of pieces) expect(columnsOf(piece.lead + piece.text)).toBeLessThanOrEqual(width)
      }),
    )
  })

  it('AP-03 a list says where it leaves something out', () => {
    expect(clipped('short', 5)).toBe('short')
    expect(clipped('longer', 5)).toBe('long…')
    expect(columnsOf(clipped('語語語語', 5))).toBeLessThanOrEqual(5)
  })
})

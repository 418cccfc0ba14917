import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { applyEdit } from '../../src/workspace/edit-text.js'
import { type Encoding, encode } from '../../src/workspace/encoding.js'

const MARK: Readonly<Record<Encoding, number[]>> = {
  'utf-8': [],
  'utf-8-bom': [0xef, 0xbb, 0xbf],
  'utf-16le': [0xff, 0xfe],
  'utf-16be': [0xfe, 0xff],
  'unknown-8bit': [],
}
const encoding = fc.constantFrom<Encoding>('utf-8', 'utf-8-bom', 'utf-16le', 'utf-16be')
/** Text in which a needle is rare enough to place, with every line end and letters that encodings differ in. */
const piece = fc.string({
  unit: fc.constantFrom(
    'a',
    ' ',
    '\n',
    '\r\n',
    '\r',
    '\t',
    'é',
    'e\u0301',
    '\u0a00',
    '\u000d',
    '日',
    '😀',
    '$&',
    '\\1',
    '"',
  ),
  maxLength: 12,
})
const NEEDLE = 'N€DLE'
const bytesOf = (text: string, as: Encoding) => Buffer.concat([Buffer.from(MARK[as]), encode(text, as)])

it('FI-07 an edit changes the bytes of its match only, in any encoding and with any line ends', () => {
  fc.assert(
    fc.property(
      encoding,
      piece,
      piece,
      fc.string({ unit: fc.constantFrom('x', '$&', '日', '$`', '\\n'), minLength: 1 }),
      (as, before, after, text) => {
        const file = bytesOf(before + NEEDLE + after, as)
        const { bytes, count } = applyEdit(file, { oldString: NEEDLE, newString: text }, 'f')
        expect(count).toBe(1)
        expect(bytes).toEqual(bytesOf(before + text + after, as))
      },
    ),
    { numRuns: 500 },
  )
})

it('FI-07 FI-09 replace_all changes each place and counts them; edits in order are as one after the other', () => {
  fc.assert(
    fc.property(encoding, fc.array(piece, { minLength: 2, maxLength: 20 }), (as, pieces) => {
      const file = bytesOf(pieces.join(NEEDLE), as)
      const all = applyEdit(file, { oldString: NEEDLE, newString: 'm', replaceAll: true }, 'f')
      expect(all.count).toBe(pieces.length - 1)
      expect(all.bytes).toEqual(bytesOf(pieces.join('m'), as))
      if (pieces.length > 2) {
        expect(() => applyEdit(file, { oldString: NEEDLE, newString: 'm' }, 'f')).toThrow(
          expect.objectContaining({ code: 'conflict' }),
        )
      }
    }),
    { numRuns: 300 },
  )
})

it('FI-07 FI-08 random bytes: an edit is refused or keeps every byte outside of one range', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.array(fc.constantFrom(10, 13, 32, 0x61, 0x62, 0x80, 0xe9, 0x93, 0xfa)).map((values) => Uint8Array.from(values)),
  )
  fc.assert(
    fc.property(
      bytes,
      fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '\r\n'), minLength: 1, maxLength: 4 }),
      (content, old) => {
        const file = Buffer.from(content)
        let edited: Buffer
        try {
          edited = applyEdit(file, { oldString: old, newString: 'Z' }, 'f').bytes
        } catch (error) {
          if (error instanceof KikiError) return
          throw error
        }
        const at = [...file].findIndex((byte, index) => byte !== edited[index])
        expect(String.fromCharCode(edited[at] ?? 0)).toBe('Z')
        const tail = edited.subarray(at + 1)
        expect(edited.subarray(0, at)).toEqual(file.subarray(0, at))
        expect(file.subarray(file.length - tail.length)).toEqual(tail)
        // What was replaced is the old text, but for line ends and white space before them.
        const gone = file.subarray(at, file.length - tail.length).toString('latin1')
        const folded = (text: string) => text.replaceAll('\r\n', '\n').replace(/[ \t]+(?=\n|$)/g, '')
        expect(folded(gone)).toBe(folded(old))
      },
    ),
    { numRuns: 2000 },
  )
})

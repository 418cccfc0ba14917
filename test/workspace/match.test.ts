import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runWhole } from '../../src/lib/slices.js'
import { decode, type Encoding, encode } from '../../src/workspace/encoding.js'
import { findText, lineNumbersOf, replaceMatches } from '../../src/workspace/match.js'

function find(
  content: string,
  wanted: string,
  options: { overlapping?: boolean; limit?: number; encoding?: Encoding } = {},
) {
  const { overlapping = true, limit = 100, encoding = 'utf-8' } = options
  const bytes = encode(content, encoding)
  const found = runWhole(findText(bytes, wanted, encoding, { from: 0, overlapping, limit }))
  const cuts = found.matches.map(({ start, end }) => decode(bytes.subarray(start, end), encoding))
  return { ...found, cuts, starts: found.matches.map(({ start }) => start) }
}

describe('findText', () => {
  it('FI-07 finds exactly what String.indexOf finds, in every encoding', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'é', '日', '😀', ' ', '\n'), { maxLength: 30 })
      .map((a) => a.join(''))
    fc.assert(
      fc.property(
        text,
        text,
        fc.constantFrom<Encoding>('utf-8', 'utf-16le', 'utf-16be'),
        (content, wanted, encoding) => {
          fc.pre(wanted !== '' && content.includes(wanted))
          const { how, starts } = find(content, wanted, { encoding })
          const expected: number[] = []
          for (let at = content.indexOf(wanted); at >= 0; at = content.indexOf(wanted, at + 1)) {
            expected.push(encode(content.slice(0, at), encoding).length)
          }
          expect({ how, starts }).toEqual({ how: 'exact', starts: expected })
        },
      ),
    )
  })

  it('FI-07 counts overlapping places as ambiguous, and replaces left to right without overlap', () => {
    expect(find('aaa', 'aa').starts).toEqual([0, 1])
    expect(find(';NULL;NULL;NULL;', ';NULL;', { overlapping: false }).starts).toEqual([0, 10])
    expect(find('x'.repeat(50), 'x', { limit: 10 })).toMatchObject({ more: true, how: 'exact' })
    expect(find('x'.repeat(10), 'x', { limit: 10 })).toMatchObject({ more: false })
  })

  it('FI-08 never begins or ends inside a CRLF', () => {
    expect(find('a\r\nb\r\n', '\nb')).toMatchObject({ how: 'line_endings', cuts: ['\r\nb'] })
    expect(find('a\r\nb\r\n', 'a\r')).toMatchObject({ cuts: [] })
    expect(find('a\r\nb', '\nb', { encoding: 'utf-16le' })).toMatchObject({ how: 'line_endings', cuts: ['\r\nb'] })
    expect(find('a\r\nb', '\nb', { encoding: 'utf-16be' })).toMatchObject({ how: 'line_endings', cuts: ['\r\nb'] })
  })

  it('FI-08 overlooks line endings first, then trailing white space and typographic quotes', () => {
    for (const encoding of ['utf-8', 'utf-16le', 'utf-16be'] as const) {
      expect(find('é\r\na\r\nb\r\n', 'a\nb', { encoding })).toMatchObject({ how: 'line_endings', cuts: ['a\r\nb'] })
      expect(find('a\nb\n', 'a\r\nb', { encoding })).toMatchObject({ how: 'line_endings', cuts: ['a\nb'] })
      expect(find('é \t\na  \r\n\tb \n', 'a\n\tb', { encoding })).toMatchObject({
        how: 'white_space_and_quotes',
        cuts: ['a  \r\n\tb'],
      })
      expect(find('say “hi”, it’s', 'say "hi", it\'s', { encoding }).cuts).toEqual(['say “hi”, it’s'])
      expect(find('say "hi"', 'say “hi”', { encoding }).cuts).toEqual(['say "hi"'])
    }
  })

  it('FI-08 matches dropped white space only at the end of a line, and takes it along', () => {
    expect(find('if xyz\nif x\t\nend', 'if x  ')).toMatchObject({ cuts: ['if x\t'] })
    expect(find('if xyz\n', 'if x  ').cuts).toEqual([])
    expect(find('a\nif x', 'if x ').cuts).toEqual(['if x'])
    expect(find('a\n\nb\n', ' \n').cuts).toEqual([])
    expect(find('a\n\nb\n', '  ').cuts).toEqual([])
  })

  it('FI-08 never matches by likeness: not the indentation, not the middle, not another normal form', () => {
    expect(find('func f\n y := 2\nend\n', 'func f\n y := 99\nend').cuts).toEqual([])
    expect(find('  a\n', '\ta').cuts).toEqual([])
    expect(find('a b\n', 'a  b').cuts).toEqual([])
    expect(find('e\u0301=1\n', '\u00e9=1').cuts).toEqual([])
  })

  it('FI-08 a tolerant search stays linear in long runs of spaces', () => {
    const content = `${'x'.repeat(10)}${' '.repeat(300_000)}y\r\nwanted  \r\n`
    expect(find(content, 'wanted\nnot').cuts).toEqual([])
    expect(find(content, 'y\nwanted\n').cuts).toEqual(['y\r\nwanted  \r\n'])
  })

  it('FI-08 folding maps every match back to a region that folds to the same text', () => {
    const piece = fc.constantFrom('a', '"', '“', '’', "'", ' ', '\t', '\n', '\r\n', 'é')
    const text = fc.array(piece, { minLength: 1, maxLength: 25 }).map((a) => a.join(''))
    const plain = (value: string) =>
      value
        .replaceAll('\r\n', '\n')
        .replace(/[ \t]+(?=\n|$)/g, '')
        .replace(/[‘’]/g, "'")
        .replace(/[“”]/g, '"')
    fc.assert(
      fc.property(text, text, fc.constantFrom<Encoding>('utf-8', 'utf-16le'), (content, wanted, encoding) => {
        const { cuts } = find(content, wanted, { encoding })
        for (const cut of cuts) expect(plain(cut)).toBe(plain(wanted))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('replaceMatches and lineNumbersOf', () => {
  it('FI-07 change nothing but the matches', () => {
    const bytes = Buffer.from('one two one')
    const matches = [
      { start: 0, end: 3 },
      { start: 8, end: 11 },
    ]
    const after = runWhole(replaceMatches(bytes, matches, ({ start }) => Buffer.from(start === 0 ? '$&' : '')))
    expect(after.toString()).toBe('$& two ')
    expect(runWhole(lineNumbersOf(Buffer.from('a\nb\n\nc'), [0, 2, 5], 'utf-8'))).toEqual([1, 2, 4])
    expect(runWhole(lineNumbersOf(encode('a\u0a0d\nb', 'utf-16be'), [0, 6], 'utf-16be'))).toEqual([1, 2])
  })
})

describe('a long text, which is folded in pieces', () => {
  it('FI-08 hides nothing at the seams: white space, line ends and quotes there are overlooked all the same', () => {
    // About where the first piece ends, a step at a time.
    for (let length = 128 * 1024 - 12; length < 128 * 1024 + 4; length++) {
      for (const filler of ['x', ' ', 'é', '\n']) {
        for (const [there, wanted] of [
          ['one  \r\n two', 'one\n two'],
          ['one\t\ntwo', 'one\ntwo'],
          ['say “a”', 'say "a"'],
        ] as const) {
          const content = `${filler.repeat(Math.floor(length / Buffer.byteLength(filler)))}@${there}@`
          const { how, cuts } = find(content, `@${wanted}@`)
          expect([length, filler, how, cuts]).toEqual([length, filler, 'white_space_and_quotes', [`@${there}@`]])
        }
      }
    }
  })
})

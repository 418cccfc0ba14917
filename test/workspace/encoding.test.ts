import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  countLineEnds,
  cutText,
  decode,
  detect,
  type Encoding,
  encode,
  eolOf,
  hasLoneSurrogate,
  wholeCharacters,
} from '../../src/workspace/encoding.js'

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))

describe('detect', () => {
  it('FI-03 knows UTF-8 and UTF-16 by content and byte order mark', () => {
    expect(detect(bytes('all:\n\techo\n'), true)).toEqual({ text: true, encoding: 'utf-8', bom: 0 })
    expect(detect(bytes([0xef, 0xbb, 0xbf], 'é'), true)).toEqual({ text: true, encoding: 'utf-8-bom', bom: 3 })
    expect(detect(bytes([0xff, 0xfe], [0x68, 0, 10, 0]), true)).toEqual({ text: true, encoding: 'utf-16le', bom: 2 })
    expect(detect(bytes([0xfe, 0xff], [0, 0x68, 0, 10]), true)).toEqual({ text: true, encoding: 'utf-16be', bom: 2 })
    expect(detect(Buffer.alloc(0), true)).toEqual({ text: true, encoding: 'utf-8', bom: 0 })
  })

  it('FI-03 names binary files by their first bytes', () => {
    const types: [Buffer, string][] = [
      [bytes([0x89], 'PNG\r\n', [0x1a, 10, 0]), 'image/png'],
      [bytes([0xff, 0xd8, 0xff, 0xe0]), 'image/jpeg'],
      [bytes('%PDF-1.7\n'), 'application/pdf'],
      [bytes('PK', [3, 4, 20]), 'application/zip'],
      [bytes([0x1f, 0x8b, 8]), 'application/gzip'],
      [bytes('RIFF', [1, 2, 3, 4], 'WEBPVP8 '), 'image/webp'],
      [bytes('text', [0], 'more'), 'application/octet-stream'],
      [bytes([0xff, 0xfe, 0, 0, 0x68, 0, 0, 0]), 'text/plain; charset=utf-32'],
      [bytes([0xff, 0xfe, 1, 2, 0, 0, 3, 4]), 'application/octet-stream'],
      [bytes([0x80, 1, 2, 3, 4, 5, 6]), 'application/octet-stream'],
    ]
    for (const [content, type] of types) expect(detect(content, true), type).toEqual({ text: false, type })
  })

  it('FI-03 takes legacy 8-bit text for text, and a character cut at the end of a piece for no fault', () => {
    const japanese = bytes([0x93, 0xfa, 0x96, 0x7b], '\nkey=1\n')
    expect(detect(japanese, true)).toEqual({ text: true, encoding: 'unknown-8bit', bom: 0 })
    const cut = Buffer.from('aé').subarray(0, 2)
    expect(detect(cut, false)).toMatchObject({ encoding: 'utf-8' })
    expect(detect(cut, true)).toMatchObject({ encoding: 'unknown-8bit' })
  })
})

describe('decode and encode', () => {
  it('give back any whole text in every encoding', () => {
    const encodings: Encoding[] = ['utf-8', 'utf-8-bom', 'utf-16le', 'utf-16be']
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.constantFrom(...encodings), (text, encoding) => {
        expect(decode(encode(text, encoding), encoding)).toBe(text)
      }),
    )
  })

  it('wholeCharacters splits UTF-8 only between characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), (text, at) => {
        const all = Buffer.from(text)
        const piece = all.subarray(0, at % (all.length + 1))
        const whole = wholeCharacters(piece, 'utf-8')
        expect(piece.length - whole).toBeLessThan(4)
        expect(all.toString('utf8', 0, whole) + all.toString('utf8', whole)).toBe(text)
      }),
    )
  })

  it('tells lone surrogates and never cuts a pair', () => {
    expect(hasLoneSurrogate('a😀b')).toBe(false)
    expect(hasLoneSurrogate('a\ud83d')).toBe(true)
    expect(cutText('a😀b', 2)).toBe('a')
    expect(cutText('a😀b', 3)).toBe('a😀')
  })
})

describe('line ends', () => {
  it('FI-01 counts LF and CRLF across pieces in every encoding', () => {
    const text = 'a\r\nb\n\r\nc\rd\u0a0d\r\n'
    for (const encoding of ['utf-8', 'utf-16le', 'utf-16be'] as const) {
      const all = encode(text, encoding)
      const step = encoding === 'utf-8' ? 1 : 2
      for (let at = 0; at <= all.length; at += step) {
        const ends = { lf: 0, crlf: 0, cr: false }
        countLineEnds(all.subarray(0, at), encoding, ends)
        countLineEnds(all.subarray(at), encoding, ends)
        expect(ends, `${encoding} at ${at}`).toMatchObject({ lf: 1, crlf: 3 })
      }
    }
    const kinds = [
      eolOf({ lf: 0, crlf: 0 }),
      eolOf({ lf: 1, crlf: 0 }),
      eolOf({ lf: 0, crlf: 1 }),
      eolOf({ lf: 1, crlf: 1 }),
    ]
    expect(kinds).toEqual(['none', 'lf', 'crlf', 'mixed'])
  })
})

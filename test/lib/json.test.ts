import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { canonicalJson, MAX_JSON_DEPTH, sha256 } from '../../src/lib/json.js'

/** Any JSON value whose integers are exact. */
const json = fc.jsonValue({ maxDepth: 5 }).filter((value) => accepted(value))

function accepted(value: unknown): boolean {
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every(accepted)
}

/** The same value with the keys of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [key, shuffled(inner)] as const)
      .reverse(),
  )
}

/** Every character of every string as a \\u escape. */
function escaped(value: unknown): string {
  return JSON.stringify(value).replace(/"(?:[^"\\]|\\.)*"/g, (text) => {
    const plain = JSON.parse(text) as string
    return `"${[...Array(plain.length).keys()].map((i) => `\\u${plain.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
  })
}

function refusalOf(value: unknown): KikiError {
  try {
    canonicalJson(value)
  } catch (error) {
    if (error instanceof KikiError) return error
    throw error
  }
  throw new Error('it was not refused')
}

describe('canonicalJson', () => {
  it('GU-10 the order of keys never counts', () => {
    fc.assert(fc.property(json, (value) => canonicalJson(shuffled(value)) === canonicalJson(value)))
  })

  it('GU-10 it is itself JSON of the same value, and its own canonical form', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value)
        expect(canonicalJson(JSON.parse(text))).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('GU-10 escapes never count', () => {
    fc.assert(fc.property(json, (value) => canonicalJson(JSON.parse(escaped(value))) === canonicalJson(value)))
  })

  it('GU-10 1, 1.0 and 1e0 are one number; so are 0 and -0', () => {
    const forms = ['{"n":1}', '{"n":1.0}', '{"n":1e0}', '{"n":10E-1}', '{ "n" : 0.1e1 }']
    expect(new Set(forms.map((text) => canonicalJson(JSON.parse(text))))).toEqual(new Set(['{"n":1}']))
    expect(canonicalJson(-0)).toBe('0')
  })

  it('GU-10 different values have different forms: no Unicode normalisation, no sorting of lists', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        const same = isDeepStrictEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)))
        expect(canonicalJson(a) === canonicalJson(b)).toBe(same)
        expect(canonicalJson([a, b]) === canonicalJson([b, a])).toBe(same)
        expect(canonicalJson({ a }) === canonicalJson({ b: a })).toBe(false)
      }),
    )
    expect(canonicalJson('\u00e9')).not.toBe(canonicalJson('e\u0301'))
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]))
    expect(canonicalJson('1')).not.toBe(canonicalJson(1))
  })

  it('GU-10 keys are ordered by UTF-16 code units, as RFC 8785 §3.2.3 shows', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6']
    const text = canonicalJson(Object.fromEntries(keys.map((key, i) => [key, i])))
    expect(Object.keys(JSON.parse(text))).toEqual(['1', '\r', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'])
  })

  it('GU-10 integers that a double cannot tell apart are refused wherever they stand', () => {
    for (const text of ['9007199254740993', '9007199254740992', '-9007199254740993', '[{"a":[1e21]}]', '1e300']) {
      const error = refusalOf(JSON.parse(text))
      expect(error.code, text).toBe('invalid_arguments')
      expect(error.hint).toBe('Send it as a string.')
    }
    expect(canonicalJson(2 ** 53 - 1)).toBe('9007199254740991')
    expect(canonicalJson(1.5e-300)).toBe('1.5e-300')
  })

  it('numbers beyond a double, and what is no JSON, are refusals and no bugs', () => {
    for (const value of [JSON.parse('1e400'), [JSON.parse('-1e400')], Number.NaN, { a: () => 1 }, [1n], undefined]) {
      expect(refusalOf(value).code).toBe('invalid_arguments')
    }
  })

  it(`nesting is refused below ${MAX_JSON_DEPTH} levels, however deep, without overflowing the stack`, () => {
    const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    expect(canonicalJson(nested(MAX_JSON_DEPTH + 1))).toHaveLength(2 * (MAX_JSON_DEPTH + 1))
    expect(refusalOf(nested(MAX_JSON_DEPTH + 2)).message).toContain('nested deeper')
    expect(refusalOf(nested(5_000)).message).toContain('nested deeper')
  })

  it('a key named __proto__ is a key like others', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}')
  })
})

it('sha256 takes text as UTF-8', () => {
  expect(sha256('é')).toBe(sha256(Buffer.from('é', 'utf8')))
  expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

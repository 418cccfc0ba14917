import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idOfCutLine, readMessage } from '../../src/bridge/message.js'
import { scanObject } from '../../src/bridge/scan.js'

const scan = (text: string) => scanObject(Buffer.from(text))
const LONG = 'x'.repeat(70_000)

describe('scanObject', () => {
  it('agrees with JSON.parse on objects, and on their outermost members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        const parsed = JSON.parse(text) as Record<string, unknown>
        const found = scan(text)
        expect(found?.names).toEqual(new Set(Object.keys(parsed)))
        const scalars = Object.entries(parsed).filter(([, member]) => typeof member !== 'object' || member === null)
        expect(found?.scalars).toEqual(new Map(scalars))
      }),
    )
  })

  it('agrees with JSON.parse on what is no JSON', () => {
    const token = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ':',
        ',',
        '"a"',
        '"',
        '\\',
        '\\"',
        '\\u00e9',
        '\\u12',
        '1',
        '-',
        '01',
        '1.',
        '1e5',
        'true',
      ],
      ...['nul', ' ', '\n', '\u0001', '"\u0001"', '"\\x"', 'é'],
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
        const text = `{${tokens.join('')}`
        let isObject = true
        try {
          JSON.parse(text)
        } catch {
          isObject = false
        }
        expect(scan(text) !== undefined).toBe(isObject)
      }),
      { numRuns: 20_000 },
    )
  })

  it('refuses endless nesting without running out of stack', () => {
    expect(scan(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).toBeUndefined()
  })
})

describe('readMessage', () => {
  it('GU-64 ids may be strings, numbers and 0, in short and in long lines', () => {
    for (const id of ['', 'a', 0, -3, 7]) {
      for (const x of ['', LONG]) {
        const line = JSON.stringify({ method: 'tools/call', params: { id: 99, x, method: 'no' }, jsonrpc: '2.0', id })
        expect(readMessage(Buffer.from(line))).toEqual({ kind: 'request', id, method: 'tools/call' })
      }
    }
  })

  it.each([
    ['text', 'hello', null, -32700],
    ['a cut object', '{"jsonrpc":"2.0","id":1', null, -32700],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', null, -32600],
    ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', null, -32600],
    ['null as id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', null, -32600],
    ['no version', '{"id":1,"method":"ping"}', 1, -32600],
    ['a number as method', '{"jsonrpc":"2.0","id":1,"method":5}', 1, -32600],
    ['nothing asked', '{"jsonrpc":"2.0","id":1}', 1, -32600],
  ])('FC-T11 %s is invalid, short or long', (_, text, id, code) => {
    expect(readMessage(Buffer.from(text))).toMatchObject({ kind: 'invalid', id, code })
    const long = text.replace('"jsonrpc"', `"x":"${LONG}","jsonrpc"`).replace('hello', LONG)
    expect(readMessage(Buffer.from(long))).toMatchObject({ kind: 'invalid', code })
  })

  it('a long answer is an answer', () => {
    const result = { jsonrpc: '2.0', result: { x: LONG, error: 1, id: 3 }, id: 5 }
    expect(readMessage(Buffer.from(JSON.stringify(result)))).toMatchObject({ kind: 'response', id: 5, failed: false })
    const error = { jsonrpc: '2.0', error: { code: 1, message: LONG }, id: 'e' }
    expect(readMessage(Buffer.from(JSON.stringify(error)))).toMatchObject({ kind: 'response', id: 'e', failed: true })
  })
})

describe('idOfCutLine', () => {
  const cut = (text: string) => idOfCutLine(Buffer.from(text.slice(0, 60)), Buffer.from(text.slice(-60)))

  it('FC-T02 finds the id at either end', () => {
    expect(cut(`{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":"${LONG}"}}`)).toBe('a')
    expect(cut(`{"method":"m","params":{"x":"${LONG}"},"jsonrpc":"2.0","id":12}\n`)).toBe(12)
    expect(cut(`{"method":"m","params":{"x":"${LONG}"},"id":"b","jsonrpc":"2.0"}\r\n`)).toBe('b')
  })

  it('FC-T02 takes no id from inside a value', () => {
    expect(cut(`{"method":"m","params":{"id":1,"x":"${LONG}","id":2}}`)).toBeNull()
    expect(cut(`{"method":"m","x":"${LONG},\\"id\\":7"}`)).toBeNull()
    expect(cut(`{"method":"m","x":"${LONG}","a,\\"id":7}`)).toBeNull()
    expect(cut(`not json ${LONG}`)).toBeNull()
  })
})

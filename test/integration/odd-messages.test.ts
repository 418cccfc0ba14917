import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RawClient, startRaw } from '../bridge/raw-client.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'

let host: TestHost
let raw: RawClient
beforeAll(async () => {
  host = await startHost()
  const connection = await host.connection()
  const session = await host.session(connection)
  raw = startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home, '--session', session])
  await raw.open()
})
afterAll(async () => {
  raw.child.stdin?.end()
  await raw.exit
  await host.stop()
})

let last = 1000
/** Sends a line, then a ping, whose answer ends the wait: what came in between. */
async function between(line: string | Buffer) {
  const from = raw.messages.length
  const id = `ping-${++last}`
  raw.child.stdin?.write(Buffer.concat([Buffer.from(line), Buffer.from('\n')]))
  raw.send({ jsonrpc: '2.0', id, method: 'ping' })
  await raw.answer(id)
  return raw.messages.slice(from).filter((message) => message.id !== id)
}
/** The answer to a request whose members besides id are given as JSON text. */
async function ask(members: string) {
  const id = ++last
  raw.send(`{"jsonrpc":"2.0","id":${id},${members}}\n`)
  return raw.answer(id)
}

describe('a message that is no good is answered, and the connection lives', () => {
  it.each([
    ['params null', '"method":"tools/call","params":null'],
    ['params a list', '"method":"tools/call","params":[1]'],
    ['params a text', '"method":"ping","params":"x"'],
    ['params a list of over 64 KiB', `"method":"ping","params":[${'1,'.repeat(50_000)}1]`],
    ['an unknown member', '"method":"ping","extra":1'],
    ['a member __proto__', '"method":"ping","__proto__":{"x":1}'],
    ['_meta a text', '"method":"tools/call","params":{"name":"List","arguments":{},"_meta":"x"}'],
    ['a progress token that is none', '"method":"tools/call","params":{"name":"List","_meta":{"progressToken":{}}}'],
  ])('GU-64 GU-66 %s: an error under its own id', async (_, members) => {
    expect((await ask(members)).error).toMatchObject({
      code: -32600,
      message: expect.stringContaining('Nothing was run'),
    })
  })

  it.each(['arguments a list', 'arguments null', 'a name that is a number'])(
    'GU-66 %s: invalid params',
    async (name) => {
      const params = {
        'arguments a list': '{"name":"Read","arguments":[1]}',
        'arguments null': '{"name":"Read","arguments":null}',
        'a name that is a number': '{"name":5}',
      }[name]
      expect((await ask(`"method":"tools/call","params":${params}`)).error?.code).toBe(-32602)
    },
  )

  it.each(['__proto__', 'constructor', 'toString', 'x'.repeat(10_000)])(
    'GU-66 no tool is called %.20s',
    async (name) => {
      const answer = await ask(`"method":"tools/call","params":{"name":"${name}","arguments":{}}`)
      expect(answer.result).toMatchObject({ isError: true, _meta: { 'kiki/error': { code: 'tool_unavailable' } } })
    },
  )

  it.each(['null', '1.5', '9007199254740992', 'true', '[1]', '{}'])(
    'GU-64 the id %s is refused with id null',
    async (id) => {
      const [answer, ...more] = await between(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      expect(answer).toMatchObject({ id: null, error: { code: -32600 } })
      expect(more).toEqual([])
    },
  )

  it.each([0, '', -1, 9007199254740991, 'a\u0000b', '\ud800', '__proto__'])(
    'GU-64 the id %j is answered under itself',
    async (id) => {
      const [answer] = await between(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }))
      expect(answer).toEqual({ jsonrpc: '2.0', id, result: {} })
    },
  )

  it('FC-T06 nothing of a batch is executed, empty and odd ones included', async () => {
    const call = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'Write', arguments: { path: 'batch', content: 'x', _kiki: { idempotency_key: `b${id}` } } },
    })
    for (const batch of [[call(9), call(10)], [], [1], [[]], Array.from({ length: 500 }, (_, i) => call(i))]) {
      const [answer, ...more] = await between(JSON.stringify(batch))
      expect(answer).toMatchObject({ id: null, error: { code: -32600 } })
      expect(more).toEqual([])
    }
    expect(existsSync(join(host.workspace, 'batch'))).toBe(false)
  })

  it('GU-66 bytes that are no text, NUL, deep nesting and headers are answered; empty lines are nothing', async () => {
    const bad = [
      Buffer.from([0xff, 0xfe, 0x80]),
      Buffer.from('\0\0'),
      '[',
      '{"a":',
      'Content-Length: 58\r',
      '"x"',
      '17',
    ]
    for (const line of bad) expect(await between(line), String(line)).toMatchObject([{ id: null }])
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(1e6)}${']'.repeat(1e6)}}}`
    expect(await between(deep)).toMatchObject([{ error: expect.anything() }])
    for (const line of ['', '  ', '\r']) expect(await between(line)).toEqual([])
  })

  it('GU-66 a call without an id, an answer to nothing and an error about nothing change nothing', async () => {
    const write = { name: 'Write', arguments: { path: 'silent', content: 'x', _kiki: { idempotency_key: 's' } } }
    expect(await between(JSON.stringify({ jsonrpc: '2.0', method: 'tools/call', params: write }))).toEqual([])
    expect(await between('{"jsonrpc":"2.0","id":99,"result":{}}')).toEqual([])
    expect(await between('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}')).toEqual([])
    expect(existsSync(join(host.workspace, 'silent'))).toBe(false)
  })

  it.each(['', '-5', '0', '1e3', 'abc', '99999999999999999999'])(
    'OP-10 the cursor %j is refused, not taken for an empty list',
    async (cursor) => {
      const args = JSON.stringify({ action: 'list', cursor })
      const { result } = await ask(`"method":"tools/call","params":{"name":"kiki_operation","arguments":${args}}`)
      expect(result).toMatchObject({ _meta: { 'kiki/error': { code: 'invalid_arguments' } } })
    },
  )
})

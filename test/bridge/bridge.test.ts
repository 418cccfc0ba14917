import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../src/lib/async.js'
import { type Build, build, tempDir } from './build.js'
import { type FixtureHost, type FixtureOptions, GOOD_CLIENT, startFixtureHost } from './fixture-host.js'
import { call, lastLine, type RawClient, startRaw } from './raw-client.js'

/** A client that opens, calls a tool that hangs, and stays. */
const PARENT = `
const [node, ...args] = [process.execPath, ...process.argv.slice(1)]
const bridge = require('node:child_process').spawn(node, args, { stdio: ['pipe', 'pipe', 'inherit'] })
const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'parent', version: '1' } }
bridge.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) + '\\n')
bridge.stdout.once('data', () => {
  const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'hang', arguments: {} } }
  bridge.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\\n' + JSON.stringify(call) + '\\n')
})
`

let built: Build
let home: string
let host: FixtureHost | undefined
let clients: RawClient[] = []

beforeAll(() => {
  built = build()
}, 60_000)
afterAll(() => built.remove())
beforeEach(() => {
  home = tempDir('kiki-home-')
})
afterEach(async () => {
  for (const client of clients) client.child.kill('SIGKILL')
  clients = []
  await host?.kill()
  host = undefined
  rmSync(home, { recursive: true, force: true })
})

function bridge(args: string[] = [], env: Record<string, string> = {}): RawClient {
  const client = startRaw(
    [built.main, 'mcp', '--client', GOOD_CLIENT, '--tools', '--no-start', '--home', home, ...args],
    env,
  )
  clients.push(client)
  return client
}

async function start(options: Partial<FixtureOptions> = {}): Promise<FixtureHost> {
  host = await startFixtureHost({ home, effects: join(home, 'effects'), ...options })
  return host
}

describe('a running host', () => {
  it('CL-10 lines pass both ways under one bridge id, with the session named from the start', async () => {
    const { streams } = await start()
    const client = bridge(['--session', 'ext_one'])
    expect((await client.open()).result?.protocolVersion).toBe('2025-11-25')
    client.send({ jsonrpc: '2.0', id: 0, method: 'tools/list' })
    expect((await client.answer(0)).result?.tools).toHaveLength(7)
    client.send(call('a', 'echo', { message: 'grüße' }))
    expect((await client.answer('a')).result?.content).toEqual([{ type: 'text', text: 'grüße' }])
    expect(streams).toMatchObject([{ url: '/bridge?session=ext_one', client: GOOD_CLIENT }])
    expect(streams[0]?.bridge).toMatch(/^bridge_/)
    expect(client.stderr()).toBe('')
  })

  it('FC-T04 a probe before initialize is answered and leaves the era open', async () => {
    await start()
    const client = bridge()
    client.send({ jsonrpc: '2.0', id: 1, method: 'server/discover' })
    expect((await client.answer(1)).error?.code).toBe(-32601)
    expect((await client.open()).result?.protocolVersion).toBe('2025-11-25')
  })

  it('GU-64 FC-T01 a second request under an id in flight is refused, the first is answered later', async () => {
    const { received } = await start()
    const client = bridge()
    await client.open()
    client.send(call(1, 'hang'))
    client.send(call(1, 'echo', { message: 'other' }))
    const refused = await client.answer(1)
    expect(refused.error).toMatchObject({ code: -32600 })
    expect(refused.error?.message).toContain('new id')
    client.send(call('1', 'echo', { message: 'a string is another id' }))
    await client.answer('1')
    expect(received).not.toContain('tools/call other')
    expect(received.filter((method) => method === 'tools/call echo')).toHaveLength(1)
  })

  it('FC-T15 cancelling what is unknown, finished or initialize changes nothing', async () => {
    const { received } = await start()
    const client = bridge()
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 999 } })
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled' })
    client.send({
      jsonrpc: '2.0',
      id: 'init',
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
    })
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'init' } })
    expect((await client.answer('init')).result?.protocolVersion).toBe('2025-06-18')
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'init' } })
    client.send({ jsonrpc: '2.0', id: 2, method: 'ping' })
    expect((await client.answer(2)).result).toEqual({})
    expect(received).not.toContain('notifications/cancelled')
  })

  it('FC-T15 a request in flight is cancelled at the host', async () => {
    const running = await start()
    const client = bridge()
    await client.open()
    client.send(call(5, 'hang'))
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    await running.saw('notifications/cancelled')
  })

  it('FC-T11 header lines and other text that is not JSON are answered, and the connection lives', async () => {
    await start()
    const client = bridge()
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    client.send(`Content-Length: ${body.length}\r\n\r\n${body}\r\n`)
    expect(await client.answer(null)).toMatchObject({ id: null, error: { code: -32700 } })
    expect((await client.answer(1)).result).toEqual({})
    expect((await client.open()).result).toBeDefined()
    client.send(
      `[${body}]\n42\n{"jsonrpc":"2.0","id":7}\n{"jsonrpc":"2.0","id":null,"method":"ping"}\n{"jsonrpc":"1.0","id":8,"method":"ping"}\n`,
    )
    expect((await client.answer(7)).error?.code).toBe(-32600)
    expect((await client.answer(8)).error?.code).toBe(-32600)
    expect(client.messages.filter((message) => message.id === null).map((message) => message.error?.code)).toEqual([
      -32700, -32600, -32600, -32600,
    ])
  })

  it('FC-T02 a line over 16 MiB is answered under its own id, and calls in flight go on', async () => {
    await start()
    const client = bridge()
    await client.open()
    const huge = 'x'.repeat(17 * 1024 * 1024)
    const { id, ...rest } = call('last', 'length', { message: huge })
    client.send({ ...rest, id })
    client.send(call('first', 'length', { message: huge }))
    client.send(call(3, 'length', { message: 'x'.repeat(11 * 1024 * 1024) }))
    for (const long of ['first', 'last']) {
      const error = (await client.answer(long)).error
      expect(error).toMatchObject({ code: -32600, data: { limit_bytes: 16 * 1024 * 1024 } })
      expect(error?.message).toContain('16 MiB')
    }
    expect((await client.answer(3)).result?.content).toEqual([{ type: 'text', text: String(11 * 1024 * 1024) }])
    client.send(call(4, 'big', { bytes: 11 * 1024 * 1024 }))
    expect(JSON.stringify((await client.answer(4)).result).length).toBeGreaterThan(11 * 1024 * 1024)
  }, 30_000)

  it('FC-T02 a long line without an id that can be found is answered with id null', async () => {
    await start()
    const client = bridge()
    client.send(`{"method":"ping","params":{"id":1,"x":"${'y'.repeat(17 * 1024 * 1024)}"},"jsonrpc":"2.0"}\n`)
    expect(await client.answer(null)).toMatchObject({ id: null, error: { code: -32600 } })
    client.send({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect((await client.answer(1)).result).toEqual({})
  }, 30_000)

  it('FC-T14 debug switches and warnings never reach standard output', async () => {
    await start()
    const client = bridge([], {
      DEBUG: '*',
      NODE_DEBUG: 'net,http',
      NODE_OPTIONS: '--trace-warnings --pending-deprecation',
    })
    await client.open()
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    await client.answer(1)
    await host?.kill()
    client.send({ jsonrpc: '2.0', id: 2, method: 'tools/list' })
    client.child.stdin?.end()
    await client.exit
    // The raw client fails on any line of standard output that is not JSON.
    expect(client.messages.every((message) => message.jsonrpc === '2.0')).toBe(true)
    expect(client.stderr()).toContain('NET')
  })

  it('a client that reads slowly slows the host down, and gets everything', async () => {
    await start()
    const client = bridge()
    await client.open()
    client.child.stdout?.pause()
    for (let n = 0; n < 40; n++) client.send(call(n, 'big', { bytes: 1024 * 1024 }))
    await host?.saw('tools/call big')
    client.child.stdout?.resume()
    for (let n = 0; n < 40; n++) expect((await client.answer(n)).result).toBeDefined()
  }, 30_000)
})

describe('the end', () => {
  it('GU-23 FC-T10 standard input at its end: pending answers are written, then the bridge is gone with code 0', async () => {
    await start()
    const client = bridge()
    client.send({ jsonrpc: '2.0', id: 1, method: 'ping' })
    client.child.stdin?.end()
    expect((await client.answer(1)).result).toEqual({})
    expect((await client.exit).code).toBe(0)
    expect(client.stderr()).toBe('')
  })

  it('GU-23 FC-T10 with a call that does not end it is gone within 2 s all the same', async () => {
    const running = await start()
    const client = bridge()
    await client.open()
    client.send(call(1, 'hang'))
    await running.saw('tools/call hang')
    const before = performance.now()
    client.child.stdin?.end()
    expect((await client.exit).code).toBe(0)
    expect(performance.now() - before).toBeLessThan(5000)
  })

  it('GU-23 FC-T10 with its parent killed it is gone within 2 s, also while a call runs', async () => {
    const running = await start()
    const args = [built.main, 'mcp', '--client', GOOD_CLIENT, '--tools', '--home', home]
    // The bridge shares its parent's standard error, so that pipe is closed when both are gone.
    const parent = spawn(process.execPath, ['-e', PARENT, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    await running.saw('tools/call hang')
    const before = performance.now()
    parent.kill('SIGKILL')
    await once(parent, 'close')
    expect(performance.now() - before).toBeLessThan(5000)
  })

  const modern = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  it.each([
    ['2025', 'stdin ends', undefined],
    ['2025', 'it is killed', undefined],
    ['2026', 'stdin ends', modern],
    ['2026', 'it is killed', modern],
  ])(
    'GU-20 FC-T07 era %s: an effect that the host has begun outlives the bridge when %s; no cancel is sent',
    async (...[, end, _meta]) => {
      const [open, done] = [deferred<void>(), deferred<void>()]
      const running = await start({ gate: { open: open.promise, done: () => done.resolve() } })
      const client = bridge()
      if (!_meta) await client.open()
      const request = call(1, 'later', { key: 'lives' })
      client.send({ ...request, params: { ...request.params, ...(_meta && { _meta }) } })
      await running.saw('tools/call later')
      if (end === 'stdin ends') client.child.stdin?.end()
      else client.child.kill('SIGKILL')
      await client.exit
      open.resolve()
      await done.promise
      expect(readFileSync(join(home, 'effects'), 'utf8')).toBe('lives\n')
      expect(running.received).not.toContain('notifications/cancelled')
    },
  )

  it('FC-T10 a reader that is gone ends it quietly', async () => {
    await start()
    const client = bridge()
    await client.open()
    client.child.stdout?.destroy()
    client.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    expect((await client.exit).code).toBe(0)
    expect(client.stderr()).toBe('')
  })

  it("CL-10 the host's refusal is the last line of standard error, with exit code 1", async () => {
    await start()
    const client = startRaw([built.main, 'mcp', '--client', 'client_bad', '--tools', '--home', home])
    clients.push(client)
    client.send({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect((await client.exit).code).toBe(1)
    expect(lastLine(client.stderr())).toBe('kiki mcp: This connection was revoked. Add a new one.')
    expect((await client.answer(1)).error?.message).toContain('This connection was revoked.')
  })

  it('CL-10 an unknown session is the host to refuse', async () => {
    await start()
    const client = bridge(['--session', 'ext_gone'])
    expect((await client.exit).code).toBe(1)
    expect(lastLine(client.stderr())).toBe('kiki mcp: No such session. Make one.')
  })

  it('CL-10 wrong arguments are one line on standard error and exit code 2', async () => {
    const client = bridge(['--frobnicate'])
    expect((await client.exit).code).toBe(2)
    expect(client.stderr()).toMatch(/^kiki mcp: Unknown argument "--frobnicate"\. Usage: .*\n$/)
    expect(client.messages).toEqual([])
  })

  it('CL-10 without a host --no-start says what to do', async () => {
    const client = bridge()
    expect((await client.exit).code).toBe(1)
    expect(client.stderr()).toMatch(/^kiki mcp: No Kiki host runs for .*Run `kiki start --home .*\n$/)
  })
})

describe('a host that goes away', () => {
  it('GU-23 FC-T03 calls in flight get an error, nothing is sent again, and the next host is found on another socket', async () => {
    const first = await start()
    const client = bridge()
    await client.open()
    client.send(call(1, 'effect', { key: 'once' }))
    await first.saw('tools/call effect')
    await first.kill()
    const lost = (await client.answer(1)).error
    expect(lost).toMatchObject({ code: -32000, data: { may_have_run: true } })
    expect(lost?.message).toMatch(/may have run.*idempotency key.*kiki_operation/)
    client.send(call(2, 'echo', { message: 'waits for the new host' }))
    const second = await start({ socketName: 'elsewhere.sock' })
    expect((await client.answer(2)).result).toBeDefined()
    expect(second.received).toEqual(['initialize', 'notifications/initialized', 'tools/call echo'])
    await client.next((message) => message.method === 'notifications/tools/list_changed')
    expect(readFileSync(join(home, 'effects'), 'utf8')).toBe('once\n')
    expect(second.streams[0]?.bridge).toBe(first.streams[0]?.bridge)
    expect(client.messages.filter((message) => message.id === 'init')).toHaveLength(1)
  })

  it('GU-23 the level of the log that the client set is set again', async () => {
    const first = await start()
    const client = bridge()
    await client.open()
    client.send({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'error' } })
    await client.answer(1)
    await first.kill()
    const second = await start()
    await second.saw('logging/setLevel')
    client.send({ jsonrpc: '2.0', id: 2, method: 'ping' })
    await client.answer(2)
    expect(client.messages.filter((message) => message.id === 1)).toHaveLength(1)
  })

  it("GU-64 the new host's requests are not taken for the old one's", async () => {
    const first = await start()
    const client = bridge()
    await client.open()
    client.send(call(1, 'ask'))
    const asked = await client.next((message) => message.method === 'ping')
    await first.kill()
    await client.next(
      (message) => message.method === 'notifications/cancelled' && message.params?.requestId === asked.id,
    )
    await start()
    client.send(call(2, 'ask'))
    const again = await client.next((message) => message.method === 'ping' && message.id !== asked.id)
    client.send({ jsonrpc: '2.0', id: asked.id, result: {} })
    client.send({ jsonrpc: '2.0', id: 3, method: 'ping' })
    await client.answer(3)
    expect(client.messages.some((message) => message.id === 2)).toBe(false)
    client.send({ jsonrpc: '2.0', id: again.id, result: {} })
    expect((await client.answer(2)).result?.content).toEqual([{ type: 'text', text: 'the client answered' }])
  })

  it('GU-23 calls wait 10 s for a host and are then told that nothing was sent; --no-start then ends it', async () => {
    const first = await start()
    const client = bridge()
    await client.open()
    client.send(call(0, 'hang'))
    await first.saw('tools/call hang')
    await first.kill()
    await client.answer(0)
    client.send(call(1, 'echo', { message: 'x' }))
    const error = (await client.answer(1)).error
    expect(error).toMatchObject({ code: -32000, data: { may_have_run: false } })
    expect(error?.message).toContain('Nothing was sent')
    expect((await client.exit).code).toBe(1)
    expect(lastLine(client.stderr())).toContain('kiki start')
  }, 20_000)

  it('GU-23 a connection that was revoked meanwhile ends with the host to say so', async () => {
    const first = await start()
    const client = bridge()
    await client.open()
    await first.kill()
    const body = { error: { code: 'connection_revoked', message: 'Revoked by the owner.' } }
    host = await startFixtureHost({ home, refuse: { status: 403, body } })
    expect((await client.exit).code).toBe(1)
    expect(lastLine(client.stderr())).toBe('kiki mcp: Revoked by the owner.')
  })

  it('GU-09 after `kiki stop` it waits a while, starts nothing, says so and ends', async () => {
    const first = await start()
    const client = startRaw([built.main, 'mcp', '--client', GOOD_CLIENT, '--tools', '--home', home])
    clients.push(client)
    await client.open()
    writeFileSync(join(home, 'stopped'), '')
    await first.stop()
    client.send(call(1, 'echo', { message: 'x' }))
    let { error } = await client.answer(1)
    // A call that was sent before the bridge saw the host go may have run; only then is the next one surely not sent.
    if ((error?.data as { may_have_run?: boolean } | undefined)?.may_have_run) {
      client.send(call(2, 'echo', { message: 'x' }))
      error = (await client.answer(2)).error
    }
    expect(error).toMatchObject({ code: -32000, data: { may_have_run: false } })
    expect(error?.message).toMatch(
      /run `kiki start.*`, then restart this MCP server in your application\. Nothing was/i,
    )
    expect((await client.exit).code).toBe(1)
    expect(client.stderr()).toMatch(/^kiki mcp: Kiki was stopped by its owner .*kiki start.*\n$/)
  }, 20_000)
})

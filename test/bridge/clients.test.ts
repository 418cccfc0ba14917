import { rmSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioClientTransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../src/lib/async.js'
import { type Build, build, tempDir } from './build.js'
import { type FixtureHost, GOOD_CLIENT, startFixtureHost } from './fixture-host.js'

const INFO = { name: 'test', version: '1' }
let built: Build
let home: string
let host: FixtureHost

beforeAll(() => {
  built = build()
}, 60_000)
afterAll(() => built.remove())
beforeEach(async () => {
  home = tempDir('kiki-home-')
  host = await startFixtureHost({ home })
})
afterEach(async () => {
  await host.kill()
  rmSync(home, { recursive: true, force: true })
})

const server = () => ({
  command: process.execPath,
  args: [built.main, 'mcp', '--client', GOOD_CLIENT, '--tools', '--no-start', '--home', home],
})

/** The few calls that the tests make, the same for every client. */
interface Driver {
  tools(): Promise<string[]>
  call(name: string, args?: Record<string, unknown>): Promise<unknown>
  close(): Promise<void>
}

type Kind = 'v1' | 'legacy' | 'auto' | '2026-07-28'

async function connect(kind: Kind, onTools: () => void): Promise<Driver> {
  const onChanged = { tools: { onChanged: onTools, autoRefresh: false, debounceMs: 0 } }
  if (kind === 'v1') {
    const client = new ClientV1(INFO, { listChanged: onChanged })
    await client.connect(new StdioClientTransportV1(server()))
    return {
      tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
      call: (name, args = {}) => client.callTool({ name, arguments: args }),
      close: () => client.close(),
    }
  }
  const mode = kind === '2026-07-28' ? { pin: kind } : kind
  const client = new Client(INFO, { versionNegotiation: { mode }, listChanged: onChanged })
  await client.connect(new StdioClientTransport(server()))
  return {
    tools: async () => (await client.listTools({}, { cacheMode: 'refresh' })).tools.map((tool) => tool.name),
    call: (name, args = {}) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  }
}

describe.each<Kind>(['v1', 'legacy', 'auto', '2026-07-28'])('client %s', (kind) => {
  it('CL-10 GU-23 FC-T03 works, and goes on working over a restart of the host without a repeated call', async () => {
    let changed = deferred<void>()
    const client = await connect(kind, () => changed.resolve())
    expect(await client.tools()).toContain('echo')
    expect(await client.call('echo', { message: 'one' })).toMatchObject({ content: [{ type: 'text', text: 'one' }] })

    const inFlight = client.call('hang').catch((error: unknown) => error)
    await host.saw('tools/call hang')
    const modern = host.received.includes('subscriptions/listen')
    expect(modern).toBe(kind === 'auto' || kind === '2026-07-28')
    await host.stop()
    expect(await inFlight).toMatchObject({ code: -32000 })

    host = await startFixtureHost({ home, socketName: 'new.sock' })
    // The client hears that the catalog may have changed while it could not listen …
    await changed.promise
    expect(await client.tools()).toContain('echo')
    expect(await client.call('echo', { message: 'two' })).toMatchObject({ content: [{ type: 'text', text: 'two' }] })
    // … and hears of the new host's changes too.
    changed = deferred()
    host.toolsChanged()
    await changed.promise
    expect(host.received).not.toContain('tools/call hang')
    expect(host.received.includes('initialize')).toBe(!modern)
    await client.close()
  })
})

it('two clients at once have streams and bridge ids of their own', async () => {
  const clients = await Promise.all([connect('legacy', () => {}), connect('2026-07-28', () => {})])
  const answers = await Promise.all(clients.map((client, n) => client.call('echo', { message: `from ${n}` })))
  expect(answers).toMatchObject([{ content: [{ text: 'from 0' }] }, { content: [{ text: 'from 1' }] }])
  // The pinned client asks which era it is with a bridge of its own first.
  expect(host.streams).toHaveLength(3)
  expect(new Set(host.streams.map((stream) => stream.bridge)).size).toBe(3)
  await Promise.all(clients.map((client) => client.close()))
})

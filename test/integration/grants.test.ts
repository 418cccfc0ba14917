import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

const PROFILES = `
[profiles.slow]
limits = { wait_ms = 20, inline_text_limit = 1000, inline_media_limit = 1000, concurrency = 1, rate = 6 }
[profiles.wide]
mode = "full"
tools = ["files", "search", "shell"]
limits = { wait_ms = 45000, inline_text_limit = 1000000, concurrency = 1000, rate = 100000 }
[profiles.narrow]
mode = "read-only"
tools = ["Read", "search"]
`

let host: TestHost

beforeAll(async () => {
  host = await startHost({ config: PROFILES })
})
afterAll(() => host.stop())

const code = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const setting = (result: CallResult) => meta<{ data?: { setting?: string } }>(result, 'kiki/error').data?.setting
const status = (result: CallResult) => meta<{ status: string }>(result, 'kiki/operation').status

/** A client of a new connection and session. */
async function open(grant: Record<string, unknown>, fields: Record<string, unknown> = {}) {
  const connection = await host.connection(grant)
  const ref = await host.session(connection, fields)
  const client = await connectClient(host, connection, 'v1', { session: ref, args: ['--no-start'] })
  return { connection, ref, client, [Symbol.asyncDispose]: () => client.close() }
}

const write = (client: TestClient, key: string) =>
  client.call('Write', { path: `${key}.txt`, content: 'x', _kiki: { idempotency_key: key } })

describe('connections', () => {
  it('GR-01 nothing listens beyond the machine, and nobody is authorised before the owner does it', async () => {
    const fresh = await startHost()
    try {
      const addresses = listeningAddresses(fresh.pid)
      expect(addresses.length).toBeGreaterThan(0)
      // 127.0.0.1 as the kernel writes it.
      expect(new Set(addresses)).toEqual(new Set(['0100007F']))
      expect(await fresh.api('GET', '/api/connections')).toEqual({ connections: [] })
      const nobody = { client: 'client_nobody', bridge: 'bridge_00000000' }
      await expect(fresh.api('POST', '/api/bridge/credential', nobody)).rejects.toThrow(/not_found/)
      expect(await upgrade(fresh.socket, 'not.a.token')).toMatchObject({ status: 403, code: 'permission_denied' })
    } finally {
      await fresh.stop()
    }
  })

  it.each([
    ['the configuration', { config: '[experimental]\nexternal_clients = false\n' }],
    ['the environment', { env: { KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS: '0' } }],
  ])('GR-01 GR-05 %s turns external clients off, also for a credential that was given out before', async (_, off) => {
    const before = await startHost()
    try {
      const client = await before.connection()
      await before.session(client)
      const bridge = 'bridge_00000000'
      const { credential } = await before.api<{ credential: string }>('POST', '/api/bridge/credential', {
        client,
        bridge,
      })
      expect(await upgrade(before.socket, credential)).toMatchObject({ status: 101 })
      await stopOnly(before)
      const after = await startHost({ base: before.base, ...off })
      try {
        await expect(after.api('POST', '/api/bridge/credential', { client, bridge })).rejects.toThrow(
          /permission_denied.*experimental\.external_clients.*restart/,
        )
        expect(await upgrade(after.socket, credential)).toMatchObject({ status: 403, code: 'permission_denied' })
        expect(await after.api('GET', '/api/status')).toMatchObject({ external: { clients_allowed: false } })
      } finally {
        await after.stop()
      }
    } finally {
      rmSync(before.base, { recursive: true, force: true })
    }
  })

  it('GR-02 GR-03 has these fields, and every default is the narrow one', async () => {
    const made = await host.api<{ id: string }>('POST', '/api/connections', { name: 'bare' })
    expect(made).toEqual({
      id: expect.stringMatching(/^client_/),
      name: 'bare',
      kind: 'local',
      status: 'active',
      policy_version: 1,
      tools: ['files', 'search', 'media'],
      ceiling: 'read-only',
      allow_commands: false,
      memory: ['workspace'],
      history: 'current',
      exposure: 'direct',
      inline_text_limit: 24_000,
      inline_media_limit: 1_048_576,
      wait_ms: 20_000,
      max_wait_ms: 45_000,
      rate: null,
      concurrency: null,
      idempotency: 'required',
      sandbox: 'required',
      network: 'off',
      dirs: [],
      template: null,
      expires_at: null,
      created_at: expect.any(String),
      last_used_at: null,
      commands: 'not allowed',
      families_without_tools: expect.any(Array),
    })
    const wrong: [Record<string, unknown>, RegExp][] = [
      [{ name: '' }, /name/],
      [{ name: 'x'.repeat(101) }, /name/],
      [{ kind: 'other' }, /kind/],
      [{ grant: { ceiling: 'everything' } }, /ceiling/],
      [{ grant: { max_wait_ms: 45_001 } }, /max_wait_ms/],
      [{ grant: { sandbox: 'none' } }, /sandbox/],
      [{ grant: { tools: ['rm -rf'] } }, /tools/],
      [{ grant: { tolls: ['files'] } }, /tolls/],
      [{ grant: { dirs: ['/does/not/exist'] } }, /\/does\/not\/exist/],
    ]
    for (const [fields, message] of wrong) {
      await expect(host.api('POST', '/api/connections', { name: 'wrong', ...fields })).rejects.toThrow(message)
    }
    const yolo = await host.api('PATCH', `/api/connections/${made.id}`, {
      name: 'x'.repeat(100),
      grant: { ceiling: 'yolo' },
    })
    expect(yolo).toMatchObject({ name: 'x'.repeat(100), ceiling: 'full', policy_version: 2 })
  })

  it('GR-02 its use is noted, its rate and its end are kept', async () => {
    await using one = await open({ rate: 3 })
    const view = () => host.api<{ last_used_at: string | null }>('GET', `/api/connections/${one.connection}`)
    writeFileSync(join(host.workspace, 'rate.txt'), 'x')
    const read = () => one.client.call('Read', { path: 'rate.txt' })
    // The use is written with the next commit: here, that of the side effect's own end.
    expect((await write(one.client, 'used')).isError).toBeFalsy()
    expect(Date.parse((await view()).last_used_at ?? '')).toBeGreaterThan(Date.now() - 60_000)
    await read()
    await read()
    const over = await read()
    expect(code(over)).toBe('rate_limited')
    expect(setting(over)).toBe('connection.rate')
    expect(textOf(over)).toMatch(/Try again in \d+ s/)
    await host.api('PATCH', `/api/connections/${one.connection}`, { expires_at: Date.now() - 1, grant: { rate: null } })
    const expired = await read()
    expect(code(expired)).toBe('connection_revoked')
    expect(setting(expired)).toBe('connection.expires_at')
  })

  it('GR-02 the extra directories of a connection are shared with its sessions, real paths only', async () => {
    const extra = join(host.base, 'extra')
    mkdirSync(extra, { recursive: true })
    writeFileSync(join(extra, 'a.txt'), 'from the extra directory')
    await using one = await open({ dirs: [extra] })
    await using two = await open({})
    expect(textOf(await one.client.call('Read', { path: join(extra, 'a.txt') }))).toContain('from the extra directory')
    expect(code(await two.client.call('Read', { path: join(extra, 'a.txt') }))).toBe('path_denied')
  })

  it('GR-03 presets are plain fields that can be changed after', async () => {
    const kiki = (...args: string[]) =>
      JSON.parse(
        execFileSync(process.execPath, [MAIN, 'connections', ...args, '--home', host.home, '--json'], {
          encoding: 'utf8',
        }),
      ) as { id: string }
    const expected = {
      observer: { tools: ['files', 'search', 'media'], ceiling: 'read-only', allow_commands: false },
      reviewer: { tools: ['files', 'search', 'media', 'history', 'tasks'], ceiling: 'manual', allow_commands: false },
      editor: { tools: ['files', 'search', 'media', 'history', 'tasks'], ceiling: 'auto-edit', allow_commands: false },
      operator: {
        tools: ['files', 'search', 'media', 'history', 'tasks', 'shell', 'browser'],
        ceiling: 'auto-edit',
        allow_commands: true,
        sandbox: 'required',
      },
    }
    for (const [preset, fields] of Object.entries(expected)) {
      expect(kiki('add', '--name', preset, '--preset', preset)).toMatchObject(fields)
    }
    const bare = kiki('add', '--name', 'bare')
    expect(bare).toMatchObject(expected.observer)
    expect(kiki('set', bare.id, '--ceiling', 'manual')).toMatchObject({
      ceiling: 'manual',
      tools: expected.observer.tools,
    })
  })

  it('GR-04 a local credential is for one home and one local connection', async () => {
    const other = await startHost()
    try {
      const client = await host.connection()
      const bridge = 'bridge_00000000'
      const { credential } = await host.api<{ credential: string }>('POST', '/api/bridge/credential', {
        client,
        bridge,
      })
      expect(await upgrade(host.socket, credential)).toMatchObject({ status: 101 })
      expect(await upgrade(other.socket, credential)).toMatchObject({ status: 403, code: 'permission_denied' })
      const [head, body = '', mac] = credential.split('.')
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as { exp: number; iat: number; sub: string }
      expect(claims.exp - claims.iat).toBeLessThanOrEqual(600)
      expect(claims.sub).toBe(client)
      const forged = Buffer.from(JSON.stringify({ ...claims, sub: await host.connection() })).toString('base64url')
      expect(await upgrade(host.socket, `${head}.${forged}.${mac}`)).toMatchObject({ status: 403 })
      const token = await host.api<{ id: string }>('POST', '/api/connections', { name: 't', kind: 'token' })
      await expect(host.api('POST', '/api/bridge/credential', { client: token.id, bridge })).rejects.toThrow(
        /kind token/,
      )
      await host.api('POST', `/api/connections/${client}/revoke`)
      expect(await upgrade(host.socket, credential)).toMatchObject({ status: 403, code: 'connection_revoked' })
      await expect(host.api('POST', '/api/bridge/credential', { client, bridge })).rejects.toThrow(/connection_revoked/)
    } finally {
      await other.stop()
    }
  })

  it('GR-04 the token of a token connection is shown once and kept as its hash only', async () => {
    const made = await host.api<{ id: string; token: string }>('POST', '/api/connections', { name: 't', kind: 'token' })
    expect(made.token).toMatch(/^kiki_[A-Za-z0-9_-]{43}$/)
    expect(await host.api('GET', `/api/connections/${made.id}`)).not.toHaveProperty('token')
    const files = ['kiki.db', 'kiki.db-wal'].map((name) => readFileSync(join(host.home, name)))
    const found = (text: string) => files.some((file) => file.includes(text))
    expect(found(createHash('sha256').update(made.token).digest('hex'))).toBe(true)
    expect(found(made.token)).toBe(false)
    expect(found(made.token.slice(5))).toBe(false)
  })
})

describe('modes', () => {
  it('PO-01 GR-05 the least of ceiling, mode and profile counts at each call, and the refusal names which', async () => {
    const cases: [string, string, string | undefined, string, string | undefined][] = [
      ['read-only', 'read-only', undefined, 'permission_denied', 'connection.ceiling'],
      ['full', 'read-only', undefined, 'permission_denied', 'session.mode'],
      ['manual', 'manual', undefined, 'approval_unavailable', 'connection.ceiling'],
      ['full', 'manual', undefined, 'approval_unavailable', 'session.mode'],
      ['full', 'full', 'narrow', 'tool_unavailable', 'profiles.narrow.tools'],
      ['auto-edit', 'auto-edit', undefined, 'ok', undefined],
      ['full', 'yolo', undefined, 'ok', undefined],
    ]
    for (const [ceiling, mode, profile, expected, by] of cases) {
      await using one = await open({ ceiling }, { mode, ...(profile === undefined ? {} : { profile }) })
      const key = `po-${ceiling}-${mode}-${profile}`
      const answer = await write(one.client, key)
      expect([key, code(answer) ?? 'ok']).toEqual([key, expected])
      if (by !== undefined) expect(setting(answer)).toBe(by)
      expect(readdirSync(host.workspace).includes(`${key}.txt`)).toBe(expected === 'ok')
      expect((await one.client.call('Glob', { pattern: '*' })).isError).toBeFalsy()
    }
  })

  it('PO-01 a lowered ceiling counts at the next call; the stored mode comes back with the ceiling', async () => {
    await using one = await open({ ceiling: 'full' }, { mode: 'full' })
    await host.api('PATCH', `/api/connections/${one.connection}`, { grant: { ceiling: 'read-only' } })
    expect(code(await write(one.client, 'lowered'))).toBe('permission_denied')
    expect(await host.api('GET', `/api/sessions/${one.ref}`)).toMatchObject({ mode: 'full' })
    const listed = await one.client.call('kiki_session', { action: 'list' })
    expect(listed.structuredContent).toMatchObject({ sessions: [{ mode: 'read-only' }] })
    await host.api('PATCH', `/api/connections/${one.connection}`, { grant: { ceiling: 'full' } })
    expect((await write(one.client, 'raised')).isError).toBeFalsy()
  })

  it('GR-05 a refusal of status and sharing names its setting too', async () => {
    await using one = await open({ tools: ['search'] })
    const unshared = await write(one.client, 'unshared')
    expect([code(unshared), setting(unshared)]).toEqual(['tool_unavailable', 'connection.tools'])
    await host.api('POST', `/api/connections/${one.connection}/pause`)
    const paused = await one.client.call('Glob', { pattern: '*' })
    expect([code(paused), setting(paused)]).toEqual(['connection_paused', 'connection.status'])
  })
})

describe('profiles', () => {
  it('GR-06 narrow tools and mode, and never widen the connection', async () => {
    await using narrow = await open({}, { profile: 'narrow' })
    expect(await narrow.client.tools()).toEqual([
      'kiki_session',
      'kiki_operation',
      'kiki_save_text',
      'Read',
      'Grep',
      'Glob',
    ])
    await using wide = await open(
      { tools: ['search'], ceiling: 'read-only', inline_text_limit: 1000 },
      { profile: 'wide', mode: 'read-only' },
    )
    expect(await wide.client.tools()).toEqual(['kiki_session', 'kiki_operation', 'kiki_save_text', 'Grep', 'Glob'])
    expect(code(await write(wide.client, 'wide'))).toBe('tool_unavailable')
    writeFileSync(join(host.workspace, 'many.txt'), 'needle in a long line of text\n'.repeat(200))
    const grep = await wide.client.call('Grep', { pattern: 'needle', limit: 200 })
    expect(textOf(grep).length).toBeLessThan(1500)
    await expect(host.session(wide.connection, { profile: 'none' })).rejects.toThrow(/Profiles are slow, wide, narrow/)
  })

  it('GR-06 OP-13 limits of a profile narrow the wait, the inline result, the calls at once and the rate of its sessions', async () => {
    await using one = await open({}, { profile: 'slow' })
    const free = await host.session(one.connection)
    writeFileSync(join(host.workspace, 'long.txt'), 'some words\n'.repeat(500))
    const read = (session_ref?: string) =>
      one.client.call('Read', { path: 'long.txt', limit: 500, _kiki: session_ref === undefined ? {} : { session_ref } })
    expect(textOf(await read())).toContain('characters are left out')
    expect(textOf(await read(free))).not.toContain('characters are left out')
    const release = await holdSearches(host, one.connection, free)
    try {
      const grep = (session_ref: string, wait_ms?: number) =>
        one.client.call('Grep', { pattern: 'x', _kiki: { session_ref, ...(wait_ms === undefined ? {} : { wait_ms }) } })
      expect(status(await grep(free, 0))).toBe('running')
      // Its own lane is free, whatever other sessions of the connection do.
      const before = performance.now()
      expect(status(await grep(one.ref))).toBe('running')
      expect(status(await grep(one.ref, 45_000))).toBe('accepted')
      expect(performance.now() - before).toBeLessThan(10_000)
      expect(status(await grep(free, 0))).toBe('running')
    } finally {
      release()
    }
    const answers: CallResult[] = []
    for (let i = 0; i < 4; i++) answers.push(await read())
    expect(answers.map(code)).toEqual([undefined, undefined, undefined, 'rate_limited'])
    expect(setting(answers.at(-1) as CallResult)).toBe('profiles.slow.limits.rate')
    expect((await read(free)).isError).toBeFalsy()
  })

  it('GR-06 a session whose profile is gone shares nothing; other sessions of the client stay', async () => {
    const own = await startHost({ config: '[profiles.gone]\nmode = "manual"\n' })
    try {
      const connection = await own.connection()
      const ref = await own.session(connection, { profile: 'gone' })
      const other = await own.session(connection)
      await stopOnly(own)
      writeFileSync(join(own.home, 'config.toml'), '')
      await own.restart()
      const client = await connectClient(own, connection, 'v1', { session: ref, args: ['--no-start'] })
      expect(code(await client.call('Glob', { pattern: '*' }))).toBe('session_unavailable')
      expect(await client.tools()).toHaveLength(3)
      await client.call('kiki_session', { action: 'resume', session_ref: other })
      expect(await client.tools()).toContain('Write')
      await client.close()
    } finally {
      await own.stop()
    }
  })
})

/** Ends a host but keeps its folder. */
async function stopOnly(stopped: TestHost): Promise<void> {
  const gone = once(stopped.process, 'exit')
  stopped.process.kill('SIGTERM')
  await gone
}

/** Asks the local socket for a bridge stream. */
function upgrade(socketPath: string, token: string): Promise<{ status: number | undefined; code?: string }> {
  return new Promise((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'kiki-bridge', authorization: `Bearer ${token}` }
    const call = request({ socketPath, path: '/bridge', headers })
    call.on('upgrade', (answer, socket) => {
      socket.destroy()
      resolve({ status: answer.statusCode })
    })
    call.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => resolve({ status: answer.statusCode, code: JSON.parse(text).error.code }))
    })
    call.on('error', reject)
    call.end()
  })
}

/** Local addresses, in the kernel's hexadecimal, of the TCP sockets on which a process listens. */
function listeningAddresses(pid: number): string[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    ),
  )
  return ['tcp', 'tcp6'].flatMap((kind) =>
    readFileSync(`/proc/${pid}/net/${kind}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && own.has(fields[9] ?? ''))
      .map((fields) => fields[1]?.split(':')[0] ?? ''),
  )
}

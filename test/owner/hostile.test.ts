import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call } from '../bridge/raw-client.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { type OwnerRoute, ownerRouteList } from '../helpers/owner-routes.js'
import type { RawAnswer } from '../helpers/owner-server.js'
import { openStream, type Stream } from '../helpers/stream.js'
import { type Watcher, watch } from '../helpers/watcher.js'

/** Every owner route, on a host with something of each kind that it could change. */
const ROUTES = ownerRouteList()
const EFFECTS = ROUTES.filter(({ method }) => method !== 'GET')

let host: TestHost
let watcher: Watcher
let stream: Stream
let own: string
let bearer: string
let ids: Record<string, string>
let before: unknown

beforeAll(async () => {
  host = await startHost()
  own = new URL(host.ownerUrl).host
  const token = readFileSync(join(host.home, 'owner.token'), 'utf8').trim()
  bearer = `Authorization: Bearer ${token}`
  watcher = await watch(host.socket)
  const connection = await host.connection()
  const session = await host.session(connection, { mode: 'manual' })
  stream = await openStream(host.socket, { connection, session, bridge: 'bridge_00000000' })
  stream.send(call('asked', 'Write', { path: 'a.txt', content: 'x', _kiki: { idempotency_key: 'k', wait_ms: 0 } }))
  await stream.answer('asked')
  const { approvals } = await host.api<{ approvals: { id: string; operation: string }[] }>('GET', '/api/approvals')
  ids = {
    connections: connection,
    sessions: session,
    approvals: approvals[0]?.id ?? '',
    operations: approvals[0]?.operation ?? '',
    rules: '1',
  }
  before = await state()
})
afterAll(async () => {
  stream.close()
  await watcher.close()
  await host.stop()
})

/** Whatever a route could change. */
async function state(): Promise<unknown> {
  const lists = ['connections', 'sessions', 'operations', 'approvals', 'policy/rules']
  const found = await Promise.all(lists.map((name) => host.api('GET', `/api/${name}`)))
  const { pid, connections } = await host.api('GET', '/api/status')
  const { entries } = await host.api<{ entries: { action: string; status: string }[] }>('GET', '/api/audit?limit=200')
  const done = entries.filter(({ status }) => status !== 'refused')
  return { found, pid, connections, done, streams: stream.messages.length }
}

const placeOf = ({ path }: OwnerRoute) =>
  path.replace(/\/([a-z]+)\/:[a-z]+/, (_, kind: string) => `/${kind}/${ids[kind]}`)

interface Variant {
  method?: string
  query?: string
  host?: string
  headers?: readonly string[]
  /** Undefined: `{}` where the method has a body. */
  body?: string
  type?: string
}

/** One request, byte for byte; read until its head is there. */
function send(
  route: OwnerRoute,
  { method = route.method, query = '', headers = [], ...rest }: Variant,
): Promise<RawAnswer> {
  const body = rest.body ?? (method === 'GET' || method === 'OPTIONS' || method === 'HEAD' ? '' : '{}')
  const lines = [`${method} ${placeOf(route)}${query} HTTP/1.1`, `Host: ${rest.host ?? own}`, ...headers]
  if (body !== '') lines.push(`Content-Type: ${rest.type ?? 'application/json'}`, `Content-Length: ${body.length}`)
  return exchange(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

function exchange(text: string, socketPath?: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(host.ownerUrl)
  const socket = socketPath === undefined ? connect(Number(port), hostname) : connect(socketPath)
  return new Promise((resolve, reject) => {
    let got = ''
    const done = () => {
      socket.destroy()
      const [head = '', ...body] = got.split('\r\n\r\n')
      const [first = '', ...lines] = head.split('\r\n')
      const headers = new Map(lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line]))
      resolve({ status: Number(first.split(' ')[1]), headers, body: body.join('\r\n\r\n') })
    }
    socket.on('error', reject)
    socket.on('end', done)
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1')
      if (got.includes('\r\n\r\n')) done()
    })
    socket.write(text)
  })
}

/** Each route answers each variant with one of these, without a CORS header, and has done nothing. */
async function refused(
  routes: readonly OwnerRoute[],
  variants: readonly Variant[],
  statuses: readonly number[],
): Promise<void> {
  for (const route of routes) {
    for (const variant of variants) {
      const answer = await send(route, variant)
      const what = `${route.method} ${route.path} ${JSON.stringify(variant)}`
      expect(statuses, `${answer.status} for ${what}: ${answer.body}`).toContain(answer.status)
      expect(
        [...answer.headers.keys()].filter((name) => name.startsWith('access-control')),
        what,
      ).toEqual([])
    }
  }
  expect(await state()).toEqual(before)
}

const isLogin = ({ path, method }: OwnerRoute) => path === '/api/login' && method === 'POST'
const UPGRADE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: eA==']

describe('every owner route', () => {
  it('FC-W04 GU-62 gives nobody anything without a credential, and takes none from the query', async () => {
    const token = bearer.split(' ')[2]
    const login = ROUTES.filter(isLogin)
    expect([ROUTES.length > 30, login.length]).toEqual([true, 1])
    const variants = [
      {},
      { headers: [`Origin: http://${own}`] },
      { query: `?token=${token}&access_token=${token}&authorization=Bearer%20${token}` },
      { headers: ['Authorization: Bearer'] },
      { headers: ['Accept: text/event-stream'] },
      { headers: [`Origin: http://${own}`, ...UPGRADE] },
      { method: 'OPTIONS', headers: [`Origin: http://${own}`, 'Access-Control-Request-Method: POST'] },
    ]
    await refused(
      ROUTES.filter((route) => !isLogin(route)),
      variants,
      [401],
    )
    // The one that needs no credential still gives nothing without a code.
    await refused(login, [{}, { body: '{"code":"x"}' }], [400, 401])
  })

  it('FC-W02 FC-W04 GU-62 refuses every Origin but the exact own one, whoever asks and however', async () => {
    const { port } = new URL(host.ownerUrl)
    const origins = [
      'https://evil.example',
      'null',
      `http://127.0.0.1.evil.com:${port}`,
      `http://127.0.0.1:${port}.evil.example`,
      `https://kiki.example.evil`,
      `http://127.0.0.1:${Number(port) + 1}`,
      `https://127.0.0.1:${port}`,
      `http://evil127.0.0.1:${port}`,
    ].map((origin) => `Origin: ${origin}`)
    const [evil = ''] = origins
    const preflight = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: authorization']
    const variants = [
      ...origins.map((origin) => ({ headers: [origin, bearer] })),
      { method: 'OPTIONS', headers: [evil, ...preflight] },
      { method: 'OPTIONS', headers: [evil, bearer, ...preflight] },
      { headers: [evil, bearer, ...UPGRADE] },
      { headers: [evil, bearer, 'Accept: text/event-stream'] },
      { headers: ['Sec-Fetch-Site: cross-site', bearer] },
      { headers: [evil], type: 'text/plain' },
    ]
    await refused(ROUTES, variants, [403])
  }, 120_000)

  it('FC-W06 GU-62 refuses every foreign Host, the event stream as well', async () => {
    const { port } = new URL(host.ownerUrl)
    const hosts = [
      `attacker.test:${port}`,
      `127.0.0.1.attacker.test:${port}`,
      `localhost:${Number(port) + 1}`,
      '127.0.0.1',
    ]
    expect(ROUTES).toContainEqual({ method: 'GET', path: '/api/events' })
    await refused(
      ROUTES,
      hosts.map((name) => ({ host: name, headers: [bearer] })),
      [403],
    )
    await refused(ROUTES, [{ host: hosts[0] ?? '', headers: [`Origin: http://${hosts[0]}`, bearer] }], [403])
  })

  it('FC-W04 GU-62 reads JSON only: what a form or a no-cors fetch can send is refused with 415', async () => {
    const types = [
      'text/plain',
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]
    const variants = types.map((type) => ({ type, body: '{"name":"x"}', headers: [bearer] }))
    await refused(ROUTES, variants, [415])
    for (const route of EFFECTS) {
      const lines = [
        `${route.method} ${placeOf(route)} HTTP/1.1`,
        'Host: kiki',
        'Content-Type: text/plain',
        'Content-Length: 2',
      ]
      const answer = await exchange(`${lines.join('\r\n')}\r\n\r\n{}`, host.socket)
      expect([answer.status, route]).toEqual([415, route])
    }
    expect(await state()).toEqual(before)
  })

  it('GU-62 FC-W04 has no effect by GET, and becomes no WebSocket even for the owner', async () => {
    const reads = new Set(ROUTES.filter(({ method }) => method === 'GET').map(({ path }) => path))
    const tricks = [
      { method: 'GET', headers: [bearer] },
      { method: 'HEAD', headers: [bearer] },
      {
        method: 'GET',
        headers: [bearer, 'X-HTTP-Method-Override: POST', 'X-Method-Override: DELETE'],
        query: '?_method=DELETE',
      },
    ]
    await refused(
      EFFECTS.filter(({ path }) => !reads.has(path) && !/\/:[a-z]+$/.test(path)),
      tricks,
      [400, 404],
    )
    // Where there is something to read it may be read, and that is all.
    await refused(ROUTES, tricks.slice(0, 2), [200, 400, 404])
    await refused(
      ROUTES.filter(({ method }) => method === 'GET'),
      [{ headers: [bearer, `Origin: http://${own}`, ...UPGRADE] }],
      [200, 400, 404],
    )
    for (const route of ROUTES) {
      const lines = [`GET ${placeOf(route)} HTTP/1.1`, 'Host: kiki', ...UPGRADE]
      const answer = await exchange(`${lines.join('\r\n')}\r\n\r\n`, host.socket)
      expect([answer.status, route]).toEqual([403, route])
    }
    expect(await state()).toEqual(before)
  })
})

import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { z } from 'zod'
import type { Channel } from '../../src/http/guards.js'
import { jsonBody } from '../../src/http/json-body.js'
import type { StaticFiles } from '../../src/http/static.js'
import { type Clock, systemClock } from '../../src/lib/clock.js'
import { KikiError } from '../../src/lib/errors.js'
import { sha256 } from '../../src/lib/json.js'
import { type Log, silentLog } from '../../src/lib/log.js'
import { createOwnerAuth, type OwnerEnv } from '../../src/owner/auth.js'
import { createOwnerFront } from '../../src/owner/front.js'

export const OWNER_TOKEN = 'owner-token-of-this-test'

/** Facts that the page shows; a test may change them. */
export const STATUS = {
  running: true,
  pid: 4242,
  version: '0.1.0',
  home: '/home/ada/.kiki',
  uptime_s: 7_860,
  owner_url: 'http://127.0.0.1:0/',
  external: { enabled: false },
  connections: 0,
  sessions: 0,
  operations: { running: 0, waiting_approval: 0 },
  upstreams: 0,
  sandbox: 'bubblewrap',
  approval_consumers: 0,
}

export interface OwnerServerOptions {
  clock?: Clock
  log?: Log
  files?: StaticFiles
  channel?: Channel
  /** A path to listen on a local socket instead of loopback. */
  socket?: string
  port?: number
  socketNeedsToken?: boolean
  record?: Parameters<typeof createOwnerFront>[0]['record']
  status?: () => object
}

/** The real front of the owner API over a real HTTP server, with a few routes that record what they did. */
export async function startOwnerServer(options: OwnerServerOptions = {}) {
  const effects: string[] = []
  const routes = new Hono<OwnerEnv>()
    .get('/status', (c) => c.json(options.status?.() ?? STATUS, 200))
    .get('/who', (c) => c.json({ kind: c.var.owner.kind }, 200))
    .get('/refused', () => {
      throw new KikiError('conflict', 'It is so already.', { hint: 'Look first.', data: { id: 'x' } })
    })
    .get('/bug', () => {
      throw new TypeError('secret detail of the inside')
    })
    .post('/effects', jsonBody(z.object({ name: z.string() }).loose()), (c) => {
      effects.push(c.req.valid('json').name)
      return c.json({ done: true }, 200)
    })
    .delete('/effects', (c) => {
      effects.length = 0
      return c.json({ done: true }, 200)
    })
  const auth = createOwnerAuth({
    ownerTokenHash: sha256(OWNER_TOKEN),
    clock: options.clock ?? systemClock,
    ...(options.socketNeedsToken === undefined ? {} : { socketNeedsToken: options.socketNeedsToken }),
  })
  let port = 0
  const app = createOwnerFront({
    auth,
    port: () => port,
    routes,
    files: options.files ?? new Map(),
    log: options.log ?? silentLog,
    record: options.record ?? ((_, next) => next()),
  })
  const channel = options.channel ?? (options.socket === undefined ? 'listener' : 'socket')
  const server = createServer(getRequestListener((request, env) => app.fetch(request, { ...env, channel })))
  await new Promise<void>((resolve) => {
    if (options.socket === undefined) server.listen(options.port ?? 0, '127.0.0.1', resolve)
    else server.listen(options.socket, resolve)
  })
  if (options.socket === undefined) port = (server.address() as AddressInfo).port
  return {
    app,
    auth,
    effects,
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface RawAnswer {
  status: number
  headers: Map<string, string>
  body: string
}

/** Sends bytes as they are, which no HTTP client would, and reads until the server closes. */
export async function raw(port: number, text: string): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1')
  socket.end(text)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = new Map(lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.replace(/^[^:]+: ?/, '')]))
  return { status: Number(first.split(' ')[1]), headers, body: rest.join('\r\n\r\n') }
}

/** Signs in as the page does; the headers that it then sends. */
export async function signIn(url: string, code: string): Promise<{ cookie: string; page: string }> {
  const answer = await fetch(`${url}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ code }),
  })
  if (answer.status !== 200) throw new Error(`sign-in answered ${answer.status}`)
  const { page_secret: page } = (await answer.json()) as { page_secret: string }
  return { cookie: answer.headers.getSetCookie()[0]?.split(';')[0] ?? '', page }
}

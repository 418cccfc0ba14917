import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { Clock } from '../../src/lib/clock.js'
import { createBrowserSessions } from '../../src/owner/browser-sessions.js'
import { OWNER_TOKEN, signIn, startOwnerServer } from '../helpers/owner-server.js'

type Server = Awaited<ReturnType<typeof startOwnerServer>>
const open: Server[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

async function start(options: Parameters<typeof startOwnerServer>[0] = {}): Promise<Server> {
  const server = await startOwnerServer(options)
  open.push(server)
  return server
}

async function who(server: Server, headers: Record<string, string>, path = '/api/who'): Promise<string> {
  const answer = await fetch(server.url + path, { headers })
  return answer.status === 200 ? ((await answer.json()) as { kind: string }).kind : String(answer.status)
}

it('GU-62 the owner token as a bearer is the owner; anything near it, and a token in the query, is not', async () => {
  const server = await start()
  expect(await who(server, { authorization: `Bearer ${OWNER_TOKEN}` })).toBe('token')
  const wrong = ['', `${OWNER_TOKEN} `.trim().slice(1), `${OWNER_TOKEN}x`, `x ${OWNER_TOKEN}`]
  for (const token of wrong) expect(await who(server, { authorization: `Bearer ${token}` })).toBe('401')
  expect(await who(server, { authorization: `Basic ${OWNER_TOKEN}` })).toBe('401')
  expect(await who(server, {}, `/api/who?token=${OWNER_TOKEN}&access_token=${OWNER_TOKEN}`)).toBe('401')
  expect(await who(server, {}, '/%61pi/who')).toBe('401')
  expect(await who(server, {}, '/api/nothing')).toBe('401')
  const refused = await fetch(`${server.url}/api/who`)
  expect(refused.headers.get('www-authenticate')).toContain('Bearer')
  expect(await refused.json()).toMatchObject({ error: { code: 'permission_denied', data: { reason: 'signed_out' } } })
})

it('GU-62 the page is its cookie together with its secret; either alone, or of two sign-ins, is nothing', async () => {
  const server = await start()
  const first = await signIn(server.url, server.auth.codes.create().code)
  const second = await signIn(server.url, server.auth.codes.create().code)
  expect(await who(server, { cookie: first.cookie, 'x-kiki-page': first.page })).toBe('page')
  expect(await who(server, { cookie: first.cookie })).toBe('401')
  expect(await who(server, { cookie: first.cookie, 'x-kiki-page': '' })).toBe('401')
  expect(await who(server, { 'x-kiki-page': first.page })).toBe('401')
  expect(await who(server, { cookie: first.cookie, 'x-kiki-page': second.page })).toBe('401')
  expect(await who(server, { cookie: `kiki_owner=${first.page}`, 'x-kiki-page': first.page })).toBe('401')
  // A wrong bearer is not mended by a good cookie.
  const both = { authorization: 'Bearer no', cookie: first.cookie, 'x-kiki-page': first.page }
  expect(await who(server, both)).toBe('401')
})

it('GU-62 a dev server on another port that was sent the cookie can do nothing with it', async () => {
  const server = await start()
  const { cookie } = await signIn(server.url, server.auth.codes.create().code)
  let stolen = ''
  const devServer = createServer((incoming, answer) => {
    stolen = incoming.headers.cookie ?? ''
    answer.end()
  })
  await new Promise<void>((resolve) => devServer.listen(0, '127.0.0.1', resolve))
  const devOrigin = `http://127.0.0.1:${(devServer.address() as AddressInfo).port}`
  // As a browser does: cookies know no port.
  await fetch(devOrigin, { headers: { cookie } })
  expect(stolen).toBe(cookie)
  const tries: Record<string, string>[] = [
    { cookie: stolen },
    { cookie: stolen, origin: devOrigin },
    { cookie: stolen, origin: server.url },
    { cookie: stolen, 'x-kiki-page': stolen.replace('kiki_owner=', '') },
    { cookie: stolen, authorization: `Bearer ${stolen.replace('kiki_owner=', '')}` },
  ]
  for (const headers of tries) {
    const answer = await fetch(`${server.url}/api/effects`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"name":"stolen"}',
    })
    expect([401, 403]).toContain(answer.status)
    const logout = await fetch(`${server.url}/api/logout/all`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })
    expect([401, 403]).toContain(logout.status)
  }
  expect(server.effects).toEqual([])
  await new Promise((resolve) => devServer.close(resolve))
})

it('GU-62 the local socket is the owner; where the platform cannot close it to others it needs the token too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kiki-auth-'))
  const ask = (socketPath: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const sent = request({ socketPath, path: '/api/who', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
      sent.on('error', reject)
      sent.end()
    })
  await start({ socket: join(folder, 'a.sock') })
  await start({ socket: join(folder, 'b.sock'), socketNeedsToken: true })
  expect(await ask(join(folder, 'a.sock'), {})).toBe(200)
  expect(await ask(join(folder, 'b.sock'), {})).toBe(401)
  expect(await ask(join(folder, 'b.sock'), { authorization: `Bearer ${OWNER_TOKEN}` })).toBe(200)
  rmSync(folder, { recursive: true })
})

it('GU-62 a browser session ends after 12 h idle by either clock, and use renews it', () => {
  const time = { now: 1_000_000, monotonic: 0 }
  const clock: Clock = { now: () => time.now, monotonic: () => time.monotonic }
  const hours = (n: number) => n * 3_600_000
  const sessions = createBrowserSessions({ clock })
  const { cookie, pageSecret } = sessions.create()
  time.monotonic = hours(11)
  expect(sessions.find(cookie, pageSecret)).toBeDefined()
  time.monotonic = hours(22)
  const session = sessions.find(cookie, pageSecret)
  expect(session).toBeDefined()
  time.now += hours(12)
  sessions.sweep()
  expect(session?.signal.aborted).toBe(true)
  expect(sessions.find(cookie, pageSecret)).toBeUndefined()
  time.monotonic = hours(24)
  const other = sessions.create()
  time.monotonic = hours(36)
  expect(sessions.find(other.cookie, other.pageSecret)).toBeUndefined()
})

it('GU-63 at most 32 browser sessions are kept; the longest idle one ends', () => {
  const sessions = createBrowserSessions({ clock: { now: () => 0, monotonic: () => 0 } })
  const made = Array.from({ length: 32 }, () => sessions.create())
  const [first, second] = made
  if (first === undefined || second === undefined) throw new Error('none made')
  expect(sessions.find(first.cookie, first.pageSecret)).toBeDefined()
  sessions.create()
  expect(sessions.find(first.cookie, first.pageSecret)).toBeDefined()
  expect(sessions.find(second.cookie, second.pageSecret)).toBeUndefined()
})

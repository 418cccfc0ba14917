import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { Clock } from '../../src/lib/clock.js'
import { createLoginCodes } from '../../src/owner/login-codes.js'
import { loginUrl, openerCommand, redirectFile, sshInstructions, wayToOpen } from '../../src/owner/open.js'
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

function post(server: Server, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

it('GU-62 login codes are made over the local socket only', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kiki-login-'))
  const socketPath = join(folder, 'kiki.sock')
  await start({ socket: socketPath })
  const made = await new Promise<{ code: string; expires_at: string }>((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request({ socketPath, method: 'POST', path: '/api/login/codes', headers }, async (answer) => {
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve(JSON.parse(text))
    })
    sent.on('error', reject)
    sent.end('{}')
  })
  expect(made.code).toMatch(/^[\w-]{32}$/)
  const life = Date.parse(made.expires_at) - Date.now()
  expect(life).toBeGreaterThan(110_000)
  expect(life).toBeLessThanOrEqual(120_000)

  const server = await start()
  expect((await post(server, '/api/login/codes', {})).status).toBe(401)
  const bearer = { authorization: `Bearer ${OWNER_TOKEN}` }
  expect((await post(server, '/api/login/codes', {}, bearer)).status).toBe(403)
  const { cookie, page } = await signIn(server.url, server.auth.codes.create().code)
  expect((await post(server, '/api/login/codes', {}, { cookie, 'x-kiki-page': page })).status).toBe(403)
  rmSync(folder, { recursive: true })
})

it('GU-62 a code is exchanged by POST, once, for an HttpOnly SameSite=Strict cookie and a secret', async () => {
  const server = await start()
  const { code } = server.auth.codes.create()
  expect((await fetch(`${server.url}/api/login?code=${code}`)).status).toBe(401)
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(server, '/api/login', { code })))
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, ...Array(7).fill(401)])
  const won = answers.find((answer) => answer.status === 200)
  const cookie = won?.headers.getSetCookie() ?? []
  expect(cookie).toHaveLength(1)
  expect(cookie[0]).toMatch(/^kiki_owner=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
  expect(answers.filter((answer) => answer.status === 401).flatMap((answer) => answer.headers.getSetCookie())).toEqual(
    [],
  )
})

it('GU-62 a code lives 2 minutes by either clock', () => {
  const time = { now: 1_000_000, monotonic: 0 }
  const clock: Clock = { now: () => time.now, monotonic: () => time.monotonic }
  const codes = createLoginCodes({ clock })
  const [early, byMonotonic] = [codes.create().code, codes.create().code]
  time.monotonic = 119_999
  time.now -= 3_600_000
  expect(codes.redeem(early)).toBe(true)
  time.monotonic = 120_000
  expect(codes.redeem(byMonotonic)).toBe(false)
  const byWall = codes.create().code
  time.now += 120_000
  expect(codes.redeem(byWall)).toBe(false)
})

it('GU-62 the eleventh failed exchange within a minute gets 429, uses up no good code, and the limit passes', async () => {
  const time = { now: 0, monotonic: 0 }
  const server = await start({ clock: { now: () => time.now, monotonic: () => time.monotonic } })
  const { code } = server.auth.codes.create()
  for (let i = 0; i < 10; i++) expect((await post(server, '/api/login', { code: `wrong${i}` })).status).toBe(401)
  const limited = await post(server, '/api/login', { code })
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '60'])
  expect(limited.headers.getSetCookie()).toEqual([])
  time.monotonic = 60_000
  expect((await post(server, '/api/login', { code })).status).toBe(200)
})

it('GU-62 a sign-in that is malformed, long, or from another origin gets nothing', async () => {
  const server = await start()
  const { code } = server.auth.codes.create()
  expect((await post(server, '/api/login', { code, extra: 1 })).status).toBe(400)
  expect((await post(server, '/api/login', { code: [code] })).status).toBe(400)
  expect((await post(server, '/api/login', { code, pad: 'x'.repeat(5000) })).status).toBe(413)
  expect((await post(server, '/api/login', { code }, { origin: 'http://127.0.0.1:1' })).status).toBe(403)
  expect((await post(server, '/api/login', { code }, { origin: server.url })).status).toBe(200)
})

it('GU-62 signing out ends one session, signing out everywhere all of them and unused codes', async () => {
  const server = await start()
  const pages = []
  for (let i = 0; i < 3; i++) pages.push(await signIn(server.url, server.auth.codes.create().code))
  const [a, b, c] = pages.map(({ cookie, page }) => ({ cookie, 'x-kiki-page': page }))
  const status = async (headers?: Record<string, string>) =>
    (await fetch(`${server.url}/api/status`, headers && { headers })).status
  const out = await post(server, '/api/logout', {}, a)
  expect(await out.json()).toEqual({ ended: 1 })
  expect(out.headers.getSetCookie()[0]).toMatch(/^kiki_owner=; Max-Age=0; Path=\//)
  expect([await status(a), await status(b), await status(c)]).toEqual([401, 200, 200])
  const { code } = server.auth.codes.create()
  expect(await (await post(server, '/api/logout/all', {}, b)).json()).toEqual({ ended: 2 })
  expect([await status(b), await status(c)]).toEqual([401, 401])
  expect((await post(server, '/api/login', { code })).status).toBe(401)
  const bearer = { authorization: `Bearer ${OWNER_TOKEN}` }
  expect(await (await post(server, '/api/logout/all', {}, bearer)).json()).toEqual({ ended: 0 })
})

it('GU-62 GU-60 the redirect file is 0600 in a 0700 folder under an unguessable name, and is removed', () => {
  const home = mkdtempSync(join(tmpdir(), 'kiki-open-'))
  const url = loginUrl('http://127.0.0.1:4321/', 'abc-_123')
  expect(url).toBe('http://127.0.0.1:4321/#login=abc-_123')
  const first = redirectFile({ home, url })
  expect(first.file).toMatch(/\/run\/open-[0-9a-f]{24}\.html$/)
  expect(statSync(first.file).mode & 0o777).toBe(0o600)
  expect(statSync(join(home, 'run')).mode & 0o777).toBe(0o700)
  expect(readFileSync(first.file, 'utf8')).toContain('content="0;url=http://127.0.0.1:4321/#login=abc-_123"')

  const old = new Date(Date.now() - 3 * 60_000)
  utimesSync(first.file, old, old)
  const stranger = join(home, 'run', 'other.html')
  writeFileSync(stranger, 'kept')
  utimesSync(stranger, old, old)
  const second = redirectFile({ home, url })
  expect(statSync(first.file, { throwIfNoEntry: false })).toBeUndefined()
  expect(readFileSync(stranger, 'utf8')).toBe('kept')
  second.remove()
  expect(statSync(second.file, { throwIfNoEntry: false })).toBeUndefined()
  for (const bad of ['https://evil.example/', 'http://127.0.0.1.evil.example/', 'javascript:alert(1)']) {
    expect(() => redirectFile({ home, url: bad })).toThrow('loopback only')
  }
  expect(readFileSync(redirectFile({ home, url: 'http://127.0.0.1:1/#"><script>' }).file, 'utf8')).not.toContain(
    '<script',
  )
  rmSync(home, { recursive: true })
})

it('CL-03 a browser is opened where there is one; over SSH the port-forward line and the link are printed', () => {
  expect(wayToOpen({ platform: 'linux', env: { DISPLAY: ':0' } })).toBe('browser')
  expect(wayToOpen({ platform: 'linux', env: {} })).toBe('print')
  expect(wayToOpen({ platform: 'darwin', env: {} })).toBe('browser')
  expect(wayToOpen({ platform: 'darwin', env: { SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' } })).toBe('ssh')
  expect(wayToOpen({ platform: 'linux', env: { DISPLAY: 'localhost:10.0', SSH_TTY: '/dev/pts/1' } })).toBe('ssh')
  expect(openerCommand('linux', '/h/o.html')).toEqual({ command: 'xdg-open', args: ['/h/o.html'] })
  expect(openerCommand('darwin', '/h/o.html')).toEqual({ command: 'open', args: ['/h/o.html'] })
  expect(openerCommand('win32', 'C:\\o.html').args).toEqual(['url.dll,FileProtocolHandler', 'C:\\o.html'])
  const lines = sshInstructions({ url: 'http://127.0.0.1:4321/#login=abc', user: 'ada', host: 'box' })
  expect(lines).toContain('  ssh -N -L 4321:127.0.0.1:4321 ada@box')
  expect(lines.at(-1)).toBe('  http://127.0.0.1:4321/#login=abc')
})

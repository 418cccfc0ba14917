import { randomBytes } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/lib/ids.js'
import { call, startRaw } from '../bridge/raw-client.js'
import { callApi, MAIN } from '../helpers/host.js'
import { raw, signIn } from '../helpers/owner-server.js'
import { runKiki } from '../helpers/run-kiki.js'
import { launcherPid } from '../processes/harness.js'
import { type Started, spawnHost } from './host-process.js'

const LAUNCHER = MAIN.replace(/main\.js$/, 'processes/launcher.js')
/** As a real secret is: nothing of it stands anywhere by chance. */
const canary = () => `Zq${randomBytes(24).toString('hex')}`

const secrets = new Map<string, string>()
const keep = (name: string, secret = canary()) => {
  secrets.set(name, secret)
  return secret
}
/** What must not be found: the secret, both base 64 forms, and the first 8 characters of it and of its random parts. */
function needles(secret: string): string[] {
  const parts = secret.split(/[.]|kiki_owner_|kiki_/).filter((part) => part.length >= 16)
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1)
  const base64url = Buffer.from(secret).toString('base64url').slice(0, -1)
  return [secret, base64, base64url, ...parts.map((part) => part.slice(0, 8))]
}
function hits(place: string, text: string): string[] {
  return [...secrets].flatMap(([name, secret]) =>
    needles(secret).flatMap((needle) =>
      text.includes(needle) ? [`${name} in ${place}: ${around(text, needle)}`] : [],
    ),
  )
}
const around = (text: string, needle: string) => {
  const at = text.indexOf(needle)
  return text.slice(Math.max(0, at - 80), at + needle.length + 20)
}

const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-canaries-')))
const home = join(base, 'home')
const workspace = join(base, 'ws')
const environment = {
  AWS_SECRET_ACCESS_KEY: keep('an environment variable'),
  KIKI_OWNER_TOKEN: keep('an environment variable of the name of a setting'),
  HTTPS_PROXY: `http://user:${keep('a proxy password')}@127.0.0.1:1`,
}
const said: string[] = []
let host: Started
let socket: string
let url: string
let exported: string
let operations: string[]

const api = <T>(method: string, path: string, body?: unknown) => callApi<T>(socket, method, path, body)
const fails = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    () => undefined,
  )

/** Every way by which a secret comes to Kiki today, each with one of its own. */
async function everyWay(): Promise<void> {
  const { id } = await api<{ id: string }>('POST', '/api/connections', { name: 'local', grant: { ceiling: 'full' } })
  const { session_ref } = await api<{ session_ref: string }>('POST', '/api/sessions', { connection: id, workspace })
  await ownerWays(id)
  await pageWays()
  await listenerWays()
  await bridgeWays(id, session_ref)
  await commandWays(id)
}

async function ownerWays(id: string) {
  const made = await api<{ id: string; token: string }>('POST', '/api/connections', { name: 'token', kind: 'token' })
  keep('a connection’s token', made.token)
  const body = { client: id, bridge: newId('bridge') }
  keep('a bridge’s credential', (await api<{ credential: string }>('POST', '/api/bridge/credential', body)).credential)
  await api('POST', `/api/connections/${made.id}/revoke`)
  await fails(api('POST', `/api/connections/${keep('a secret as an id')}/revoke`))
  await fails(api('GET', `/api/operations?session=${keep('a secret in a query')}&limit=0`))
  await fails(api('POST', `/api/${keep('a secret as a route')}`))
  await fails(api('POST', '/api/connections', { name: 1, [keep('a secret as a field')]: keep('a secret in a field') }))
}

async function pageWays() {
  const { code } = await api<{ code: string }>('POST', '/api/login/codes')
  keep('a sign-in code', code)
  const { cookie, page } = await signIn(url, code)
  keep('the page’s cookie', cookie.split('=')[1])
  keep('the page’s secret', page)
  const headers = { 'content-type': 'application/json', cookie, 'x-kiki-page': page }
  await fetch(`${url}/api/status`, { headers })
  await fetch(`${url}/api/logout`, { method: 'POST', headers, body: '{}' })
  await fetch(`${url}/api/status`, { headers: { cookie: `kiki_owner=${keep('a wrong cookie')}`, 'x-kiki-page': 'x' } })
}

async function listenerWays() {
  const json = { 'content-type': 'application/json' }
  const post = (body: string, headers = {}) =>
    fetch(`${url}/api/login`, { method: 'POST', headers: { ...json, ...headers }, body })
  expect((await post(JSON.stringify({ code: keep('a wrong sign-in code') }))).status).toBe(401)
  expect((await post(`{"code": ${keep('a secret in broken JSON')}`)).status).toBe(400)
  expect((await post(JSON.stringify({ code: [keep('a secret of the wrong type')] }))).status).toBe(400)
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  await fetch(`${url}/api/status`, { headers: bearer(keep('a wrong bearer')) })
  const owner = secrets.get('the owner’s token') ?? ''
  await fetch(`${url}/api/status`, { headers: bearer(owner) })
  await fetch(`${url}/api/connections`, {
    method: 'POST',
    headers: { ...bearer(owner), ...json },
    body: `{${keep('a secret in the owner’s broken JSON')}`,
  })
  await raw(
    Number(new URL(url).port),
    `GET /api/status HTTP/1.1\r\nHost: ${keep('a secret as a host')}\r\nConnection: close\r\n\r\n`,
  )
  await raw(
    Number(new URL(url).port),
    `${keep('a secret as a request line')}\r\nAuthorization: ${keep('a secret in garbage')}\r\n\r\n`,
  )
  for (const credential of [keep('a wrong credential'), secrets.get('a bridge’s credential') ?? ''])
    await upgrade(credential)
}

/** An upgrade of the local socket, and garbage after it. */
function upgrade(credential: string): Promise<void> {
  return new Promise((resolve) => {
    const stream = connect(socket)
    stream.on('error', () => undefined)
    stream.on('close', () => resolve())
    stream.on('data', () => stream.end(`{"jsonrpc": "2.0", "${keep(`garbage on a stream ${secrets.size}`)}\n`))
    stream.write(
      `GET /bridge HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\nAuthorization: Bearer ${credential}\r\n\r\n`,
    )
  })
}

async function bridgeWays(id: string, session: string) {
  const client = startRaw([MAIN, 'mcp', '--client', id, '--tools', '--home', home, '--session', session], environment)
  await client.open()
  const key = () => ({ _kiki: { idempotency_key: newId('op') } })
  const secretArguments = {
    password: keep('an argument named password'),
    api_key: keep('an argument named api_key'),
    headers: { Authorization: `Bearer ${keep('an argument named Authorization')}` },
  }
  const calls = [
    call(1, 'Write', { path: 'a.txt', content: keep('the content of a file'), ...key() }),
    call(2, 'Write', { path: 'a.txt', content: 'x', ...secretArguments, ...key() }),
    call(3, 'Edit', { path: 'a.txt', old_string: keep('a text to find'), new_string: 'x', ...key() }),
    call(4, 'Grep', { pattern: `(${keep('a broken pattern')}`, path: '.' }),
    call(5, keep('a secret as a tool'), {}),
    call(6, 'kiki_operation', { operation_id: keep('a secret as an operation') }),
    call(7, 'kiki_session', { action: 'attach', session_ref: keep('a secret as a session') }),
    call(8, 'Read', { path: keep('a secret as a path') }),
    call(9, 'List', { path: '.', _kiki: { session_ref: keep('a secret in _kiki') } }),
    { jsonrpc: '2.0', id: 10, method: keep('a secret as a method'), params: {} },
  ]
  for (const message of calls) {
    client.send(message)
    await client.answer(message.id)
  }
  client.send(`{"jsonrpc":"2.0","id":11,"method":"tools/call",${keep('a secret in a broken message')}\n`)
  client.send(`${keep('a secret as a message')}\n`)
  client.send({ jsonrpc: '2.0', id: 12, method: 'ping' })
  await client.answer(12)
  client.child.stdin?.end()
  await client.exit
  said.push(client.stderr())
}

async function commandWays(id: string) {
  for (const args of [
    ['config', 'show', '--origin'],
    ['start', '--port', '1'],
    ['connections', 'show', 'nobody'],
    ['connections', 'revoke', id, '--yes'],
    ['mcp', '--client', 'nobody', '--tools'],
    ['audit'],
    ['audit', 'verify'],
    ['operations', 'show', 'nobody', '--json'],
  ]) {
    const { out, err } = await runKiki(home, args)
    said.push(out, err)
  }
  const { out } = await runKiki(home, ['audit', 'export'])
  exported = out
}

beforeAll(async () => {
  for (const dir of [home, workspace]) mkdirSync(dir, { mode: 0o700 })
  writeFileSync(
    join(home, 'config.toml'),
    `api_key = "${keep('an unknown setting')}"\n[calls]\ntoken = "${keep('an unknown setting of a table')}"\n`,
  )
  host = spawnHost(home, ['--log-level', 'debug'], environment)
  const facts = await host.ready
  if (facts === undefined) throw new Error((await host.ended).stderr)
  socket = facts.socket
  url = facts.owner_url
  for (const [name, file] of [
    ['the owner’s token', 'owner.token'],
    ['the key of credentials', 'keys/credential.key'],
    ['the key of the audit log', 'keys/audit.key'],
  ] as const)
    keep(name, readFileSync(join(home, file), 'utf8').trim())
  await everyWay()
}, 120_000)
afterAll(async () => {
  host.kill('SIGTERM')
  await host.ended
  rmSync(base, { recursive: true, force: true })
})

describe('canaries', () => {
  it('GU-61 the launcher, and so every child, has nothing of the host’s environment but the allow-list', () => {
    const names = readFileSync(`/proc/${launcherPid(LAUNCHER, host.pid)}/environ`, 'latin1')
      .split('\0')
      .filter((entry) => entry !== '')
      .map((entry) => entry.split('=')[0])
    expect(names).toContain('PATH')
    for (const name of Object.keys(environment)) expect(names).not.toContain(name)
    const child =
      /^(SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|GIT_SSL_CAINFO|PIP_CERT|PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|COLORTERM)$/
    expect(names.filter((name) => !child.test(name ?? ''))).toEqual([])
  })

  it('GU-60 FC-W05 none that went by any way is in a log, the audit log, its export, or what commands and errors say', async () => {
    host.kill('SIGTERM')
    const { stderr } = await host.ended
    const logs = readdirSync(join(home, 'logs')).map((name) => readFileSync(join(home, 'logs', name), 'utf8'))
    const log = logs.join('\n')
    // Not an empty proof: the run is in all of them.
    expect(secrets.size).toBeGreaterThan(35)
    for (const level of ['debug', 'info', 'warn'])
      expect(log).toContain(`"level":${{ debug: 20, info: 30, warn: 40 }[level]}`)
    expect(exported).toContain('"action":"connection.revoked"')
    expect(exported).toContain('"action":"owner.sign_in_refused"')
    expect(said.join('\n')).toContain('owner.refused')
    expect([
      ...hits('the log', log),
      ...hits('the export', exported),
      ...hits('what commands said', said.join('\n')),
      ...hits('standard error of the host', stderr),
    ]).toEqual([])
  })

  it('GU-60 FC-W01 nor in any column of the database, but for arguments, results and saved texts', () => {
    const db = new BetterSqlite3(join(home, 'kiki.db'), { readonly: true })
    const own: Record<string, string[]> = {
      operations: ['arguments', 'result'],
      result_parts: ['body'],
      saved_texts: ['title', 'body'],
    }
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[]
    const found: string[] = []
    let looked = 0
    for (const table of tables) {
      for (const row of db.prepare(`SELECT * FROM "${table}"`).all() as Record<string, unknown>[]) {
        for (const [column, value] of Object.entries(row)) {
          if (own[table]?.includes(column) || typeof value === 'number' || value === null) continue
          const text = Buffer.isBuffer(value) ? value.toString('latin1') : String(value)
          looked++
          found.push(...hits(`${table}.${column}`, text))
        }
      }
    }
    const written = db.prepare("SELECT arguments FROM operations WHERE tool = 'Write'").pluck().all() as string[]
    db.close()
    expect(found).toEqual([])
    expect(tables).toContain('audit')
    expect(looked).toBeGreaterThan(100)
    expect(written.some((text) => text.includes(secrets.get('the content of a file') ?? '-'))).toBe(true)
  })

  it('GU-60 own tokens are on disk as hashes, or in a 0600 file of their own', () => {
    const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const holders = (name: string) =>
      files.flatMap((entry) => {
        const path = join(entry.parentPath, entry.name)
        return readFileSync(path, 'latin1').includes(secrets.get(name) ?? '-') ? [path.slice(home.length + 1)] : []
      })
    expect(holders('the owner’s token')).toEqual(['owner.token'])
    expect(holders('the key of credentials')).toEqual(['keys/credential.key'])
    expect(holders('the key of the audit log')).toEqual(['keys/audit.key'])
    for (const name of ['a connection’s token', 'a bridge’s credential', 'a sign-in code', 'the page’s secret'])
      expect([name, holders(name)]).toEqual([name, []])
    for (const entry of files) expect(lstatSync(join(entry.parentPath, entry.name)).mode & 0o077).toBe(0)
  })
})

describe('the log', () => {
  it('PK-07 is JSON lines, and every line about an operation carries its id', () => {
    const lines = readFileSync(join(home, 'logs', 'kiki.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const line of lines)
      expect(line).toMatchObject({ level: expect.any(Number), time: expect.any(String), msg: expect.any(String) })
    const db = new BetterSqlite3(join(home, 'kiki.db'), { readonly: true })
    operations = db.prepare("SELECT id FROM operations WHERE status = 'completed'").pluck().all() as string[]
    db.close()
    expect(operations.length).toBeGreaterThan(0)
    for (const id of operations) {
      const about = lines.filter((line) => JSON.stringify(line).includes(id))
      expect(about.map(({ status }) => status)).toContain('completed')
      for (const line of about) expect(line.operation).toBe(id)
    }
  })

  it('PK-07 --log-level says how much it tells', async () => {
    const before = readFileSync(join(home, 'logs', 'kiki.log'), 'utf8').length
    const quiet = spawnHost(home, ['--log-level', 'warn'])
    await quiet.ready
    quiet.kill('SIGTERM')
    await quiet.ended
    expect(readFileSync(join(home, 'logs', 'kiki.log'), 'utf8').length).toBe(before)
  })

  it('PK-07 a large one is put aside at the start, and none is lost', async () => {
    const large = readFileSync(join(home, 'logs', 'kiki.log'), 'utf8').padEnd(10 * 1024 * 1024, '\n')
    writeFileSync(join(home, 'logs', 'kiki.log'), large)
    const next = spawnHost(home)
    await next.ready
    next.kill('SIGTERM')
    await next.ended
    expect(readFileSync(join(home, 'logs', 'kiki.log.1'), 'utf8')).toBe(large)
    const now = lstatSync(join(home, 'logs', 'kiki.log'))
    expect([now.mode & 0o777, now.size < 10_000]).toEqual([0o600, true])
  })
})

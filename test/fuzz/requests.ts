import { type OwnerRoute, ownerRouteList } from '../helpers/owner-routes.js'
import type { Random } from '../helpers/random.js'
import { HOSTILE_TEXTS, hostileValue, mutateBytes, mutateJson, randomBytes, toText } from './mutate.js'

/** What requests may name: things that were made to be broken. */
export interface Decoys {
  connection: string
  session: string
  operation: string
  workspace: string
  backups: string
}

export interface Target {
  channel: 'socket' | 'listener'
  /** Of the listener. */
  host: string
  token: string
}

export interface FuzzRequest {
  bytes: Buffer
  /** Only the listener's requests have to show it, and not all do. */
  authorised: boolean
  /** Whether the path is still the API's. */
  intact: boolean
}

/** These cost time that grows with the log; one in so many is enough. */
const COSTLY = /^\/api\/audit\//
const ROUTES = ownerRouteList()

/** One request as bytes, for the local socket or the listener. */
export function requestOf(random: Random, decoys: Decoys, target: Target): FuzzRequest {
  if (random.chance(0.05)) return { bytes: randomBytes(random, random.below(300)), authorised: true, intact: false }
  if (target.channel === 'socket' && random.chance(0.1))
    return { bytes: upgradeOf(random, decoys), authorised: true, intact: false }
  let route = random.pick(ROUTES)
  if (COSTLY.test(route.path) && random.chance(0.9))
    route = random.pick(ROUTES.filter(({ path }) => !COSTLY.test(path)))
  // Whoever may stop the host would: that is no fault, and not to be tried here.
  const stops = route.path === '/api/stop'
  const authorised = target.channel === 'socket' || (!stops && random.chance(0.6))
  if (stops && target.channel === 'socket') return requestOf(random, decoys, target)
  const bytes = compose(random, decoys, target, { route, authorised })
  // An id such as `..` makes another path a stop.
  if (authorised && leadsToStop(bytes)) return requestOf(random, decoys, target)
  // A stop without its credential stays one: so a change of bytes cannot make one that counts.
  const broken = random.chance(0.2)
  return { bytes: broken ? mutateBytes(random, bytes) : bytes, authorised, intact: !broken }
}

/** As whoever takes the request reads its path. */
function leadsToStop(bytes: Buffer): boolean {
  const [, path = '/'] = /^\S+ (\S+) /.exec(bytes.toString('latin1', 0, 8192)) ?? []
  const url = `http://localhost${path}`
  return URL.canParse(url) && new URL(url).pathname === '/api/stop'
}

function compose(
  random: Random,
  decoys: Decoys,
  { host, token }: Target,
  { route, authorised }: { route: OwnerRoute; authorised: boolean },
): Buffer {
  const method = random.chance(0.9) ? route.method : random.pick(['GET', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'get', 'Ü'])
  const path = pathOf(random, decoys, route.path) + queryOf(random)
  const text = random.chance(0.9) ? toText(bodyOf(random, decoys)) : random.pick(HOSTILE_TEXTS)
  const body = Buffer.from(random.chance(0.02) ? `${'['.repeat(5000)}${']'.repeat(5000)}` : text)
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${random.chance(0.95) ? host : random.pick(HOSTS)}`]
  if (authorised) lines.push(`Authorization: Bearer ${token}`)
  if (random.chance(0.95)) lines.push(`Content-Type: ${random.chance(0.95) ? 'application/json' : random.pick(TYPES)}`)
  if (random.chance(0.1)) lines.push(random.pick(HEADERS))
  const chunked = random.chance(0.1)
  if (chunked) lines.push('Transfer-Encoding: chunked')
  else if (random.chance(0.95))
    lines.push(`Content-Length: ${random.chance(0.95) ? body.length : random.pick(LENGTHS)}`)
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  return chunked ? Buffer.concat([head, inChunks(random, body)]) : Buffer.concat([head, body])
}

const HOSTS = ['', 'evil.example', 'a b', '[::1', '127.0.0.1:99999', 'x'.repeat(5000), '%00', '@', '/']
const TYPES = ['text/plain', 'application/x-www-form-urlencoded', '', 'application/json; charset=utf-16', '\u00ff']
const LENGTHS = ['0', '-1', '1', '99999999999', '1e3', '0x10', '5, 5', 'NaN']
const HEADERS = [
  'Origin: null',
  'Origin: https://evil.example',
  'Sec-Fetch-Site: cross-site',
  'Expect: 100-continue',
  'Expect: what',
  'Cookie: kiki_owner=x; kiki_owner="',
  'X-Kiki-Page: x',
  'Connection: Upgrade\r\nUpgrade: h2c',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13',
  'Accept: text/event-stream',
  'Content-Encoding: gzip',
  `X-Long: ${'x'.repeat(20_000)}`,
  'Range: bytes=0-1',
  ' folded: x',
  'No colon',
]

function pathOf(random: Random, { connection, session, operation }: Decoys, pattern: string): string {
  const ids = [
    connection,
    session,
    operation,
    'none',
    '0',
    '-1',
    '1e9',
    '%00',
    '%',
    '%ff',
    '..',
    '%2e%2e%2f',
    'é',
    '%F0%9F',
  ]
  const path = pattern.replace(/:[a-z]+/g, () => {
    if (random.chance(0.6))
      return pattern.includes('connections') ? connection : pattern.includes('sessions') ? session : operation
    return random.chance(0.8) ? random.pick(ids) : encodeURIComponent(random.pick(ids.concat('x'.repeat(3000))))
  })
  return random.chance(0.05)
    ? path.replace('/api', random.pick(['//api', '/API', '/api/', '/%61pi', '/x/../api']))
    : path
}

const KEYS = ['limit', 'before', 'offset', 'status', 'session', 'connection', 'since', 'head', 'approvals', 'diff', 'x']

function queryOf(random: Random): string {
  const parts = Array.from({ length: random.below(3) }, () => {
    const values = [
      '1',
      '-1',
      '1e400',
      '9007199254740993',
      '',
      'open',
      'true',
      'false',
      '%00',
      '%',
      '2026-01-01',
      '[]',
      '%ED%A0%80',
    ]
    return `${random.pick(KEYS)}=${random.pick(values)}`
  })
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

function bodyOf(random: Random, { connection, session, operation, workspace, backups }: Decoys): unknown {
  const body = random.pick<Record<string, unknown>>([
    {},
    { name: 'fuzz', grant: { tools: ['files'], ceiling: 'manual', dirs: [workspace], rate: 5 }, kind: 'token' },
    { name: 'fuzz', expires_at: 4_000_000_000_000, grant: { network: ['a.example'], template: { workspace } } },
    { grant: { ceiling: 'read-only' } },
    { connection, workspace, mode: 'manual', title: 'fuzz' },
    { title: 'other', mode: 'full' },
    { client: connection, bridge: 'bridge_00000000' },
    { scope: 'session' },
    { message: 'no' },
    { found: 'happened', note: 'seen' },
    { session, tool: 'Write', argument: { path: 'a', content: 'b' } },
    { session, tool: 'Bash', argument: 'git status && rm -rf "$(cat x)" <<E\n$((1+2))\nE' },
    { dry_run: true, since: operation },
    { code: 'x' },
  ])
  if (random.chance(0.02)) return { file: `${backups}/b` }
  if (random.chance(0.02)) return { file: hostileValue(random) }
  return random.chance(0.6) ? mutateJson(random, body) : body
}

function inChunks(random: Random, body: Buffer): Buffer {
  if (random.chance(0.2))
    return Buffer.from(random.pick(['zz\r\n', '5\r\nab', '-1\r\n\r\n', 'ffffffffffffffff\r\n', '0\r\nX: y\r\n']))
  const chunk = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')])
  return Buffer.concat(body.length === 0 ? [Buffer.from('0\r\n\r\n')] : [chunk, Buffer.from('0\r\n\r\n')])
}

/** Asks for a bridge stream as no bridge does. */
function upgradeOf(random: Random, { session }: Decoys): Buffer {
  const target = random.pick([
    '/bridge',
    '//',
    '//x:99999',
    'http://',
    '/bridge?session=%ff',
    `/bridge?session=${session}`,
    '*',
    '/api/events',
  ])
  const token = random.pick(['', 'a.b.c', 'eyJhbGciOiJub25lIn0.e30.', '\u0000', 'x'.repeat(8000)])
  const kind = random.pick(['kiki-bridge', 'websocket', 'KIKI-BRIDGE', ''])
  const head = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${kind}\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const bytes = Buffer.from(head)
  return random.chance(0.3) ? mutateBytes(random, bytes) : bytes
}

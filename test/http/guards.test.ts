import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_BODY_BYTES } from '../../src/http/guards.js'
import { OWNER_TOKEN, type RawAnswer, raw, startOwnerServer } from '../helpers/owner-server.js'

type Server = Awaited<ReturnType<typeof startOwnerServer>>

const bearer = `Authorization: Bearer ${OWNER_TOKEN}`

/** Every kind of route: with and without effect, the page, signing in, and none at all. */
const ROUTES = [
  ['GET', '/'],
  ['GET', '/api/status'],
  ['POST', '/api/effects'],
  ['DELETE', '/api/effects'],
  ['POST', '/api/login'],
  ['POST', '/api/login/codes'],
  ['OPTIONS', '/api/effects'],
  ['GET', '/nothing'],
] as const

describe('the owner listener', () => {
  let server: Server
  beforeAll(async () => {
    server = await startOwnerServer({ files: new Map([['/index.html', page]]) })
  })
  afterAll(() => server.close())

  const page = { body: new TextEncoder().encode('<!doctype html>'), type: 'text/html', immutable: false }

  function send(method: string, path: string, host: string, ...headers: string[]): Promise<RawAnswer> {
    const body = method === 'POST' ? '{"name":"x","code":"x"}' : ''
    const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...headers]
    if (body !== '') lines.push(`Content-Length: ${body.length}`)
    if (body !== '' && !headers.some((h) => /^content-type/i.test(h))) lines.push('Content-Type: application/json')
    return raw(server.port, `${lines.join('\r\n')}\r\n\r\n${body}`)
  }
  const own = () => `127.0.0.1:${server.port}`

  it('GU-62 a foreign Host gets 403 on every route, whoever asks (DNS rebinding)', async () => {
    const hosts = [
      'evil.example',
      `evil.example:${server.port}`,
      '127.0.0.1',
      `127.0.0.1:${server.port + 1}`,
      `127.0.0.1.evil.example:${server.port}`,
      `evil127.0.0.1:${server.port}`,
      `localhost.:${server.port}`,
      `LOCALHOST:${server.port}`,
      `0.0.0.0:${server.port}`,
      `127.0.0.2:${server.port}`,
    ]
    for (const [method, path] of ROUTES) {
      for (const host of hosts) {
        const answer = await send(method, path, host, bearer)
        expect([answer.status, path, host]).toEqual([403, path, host])
      }
    }
    expect(server.effects).toEqual([])
  })

  it('GU-62 two Hosts and a request target with a host of its own get nothing', async () => {
    const two = await send('GET', '/api/status', own(), 'Host: evil.example', bearer)
    expect([400, 403]).toContain(two.status)
    const absolute = await send('GET', 'http://evil.example/api/status', own(), bearer)
    expect([400, 403]).toContain(absolute.status)
  })

  it('GU-62 the three own addresses are answered', async () => {
    for (const host of [own(), `localhost:${server.port}`, `[::1]:${server.port}`]) {
      const answer = await send('GET', '/api/status', host, bearer, `Origin: http://${host}`)
      expect([answer.status, host]).toEqual([200, host])
    }
  })

  it('GU-62 any Origin but the exact own one gets 403 on every route, and no CORS header is ever sent', async () => {
    const origins = [
      'https://evil.example',
      'null',
      `http://127.0.0.1.evil.com:${server.port}`,
      `http://127.0.0.1:${server.port}.evil.example`,
      `http://evil127.0.0.1:${server.port}`,
      `https://127.0.0.1:${server.port}`,
      `http://127.0.0.1:${server.port}/`,
      `http://127.0.0.1:${server.port + 1}`,
      'http://127.0.0.1',
      `http://localhost:${server.port}`,
      `http://user@127.0.0.1:${server.port}`,
      '',
    ]
    for (const [method, path] of ROUTES) {
      for (const origin of origins) {
        const answer = await send(method, path, own(), bearer, `Origin: ${origin}`)
        expect([answer.status, path, origin]).toEqual([403, path, origin])
        expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }
    expect(server.effects).toEqual([])
  })

  it('GU-62 a preflight, a stream and a WebSocket of another site get 403, and the own origin gets no CORS header', async () => {
    const evil = 'Origin: https://evil.example'
    const preflight = await send('OPTIONS', '/api/effects', own(), evil, 'Access-Control-Request-Method: POST')
    const stream = await send('GET', '/api/events', own(), evil, 'Accept: text/event-stream', bearer)
    const upgrade = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: eA==',
    ]
    const socket = await send('GET', '/api/events', own(), evil, ...upgrade)
    expect([preflight.status, stream.status, socket.status]).toEqual([403, 403, 403])
    const mine = await send('OPTIONS', '/api/effects', own(), `Origin: http://${own()}`, bearer)
    expect([...mine.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('GU-62 what the browser says another site or another port asked for gets 403; a link to the page opens it', async () => {
    for (const site of ['cross-site', 'same-site', 'rubbish']) {
      const header = `Sec-Fetch-Site: ${site}`
      expect((await send('GET', '/api/status', own(), bearer, header)).status).toBe(403)
      expect((await send('POST', '/api/login', own(), header)).status).toBe(403)
      expect((await send('GET', '/', own(), header, 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: script')).status).toBe(
        403,
      )
      const framed = ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: iframe']
      expect((await send('GET', '/', own(), header, ...framed)).status).toBe(403)
      const link = ['Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document']
      expect((await send('GET', '/', own(), header, ...link)).status).toBe(200)
      expect((await send('GET', '/api/status', own(), bearer, header, ...link)).status).toBe(403)
    }
    for (const site of ['same-origin', 'none']) {
      expect((await send('GET', '/api/status', own(), bearer, `Sec-Fetch-Site: ${site}`)).status).toBe(200)
    }
  })

  it('GU-62 a body that is not JSON gets 415 and has no effect', async () => {
    const types = [
      'text/plain',
      'text/plain; application/json',
      'application/json, text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=application/json',
      'application/jsonx',
      'application/json; charset=latin1',
      '',
    ]
    for (const type of types) {
      const answer = await send('POST', '/api/effects', own(), bearer, `Content-Type: ${type}`)
      expect([answer.status, type]).toEqual([415, type])
    }
    expect(server.effects).toEqual([])
    const deletion = await send('DELETE', '/api/effects', own(), bearer, 'Transfer-Encoding: chunked')
    expect([400, 415]).toContain(deletion.status)
    const good = await send('POST', '/api/effects', own(), bearer, 'Content-Type: application/json; charset=UTF-8')
    expect([good.status, server.effects]).toEqual([200, ['x']])
  })

  it('GU-63 a body over 4 MiB gets 413, told or chunked, and one of 4 MiB is read', async () => {
    const body = (bytes: number) => {
      const start = '{"name":"big","pad":"'
      return `${start}${'p'.repeat(bytes - start.length - 2)}"}`
    }
    const post = (bytes: number, chunked: boolean) =>
      new Promise<number>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${OWNER_TOKEN}` }
        const sent = request(`${server.url}/api/effects`, { method: 'POST', agent: false, headers }, (answer) => {
          answer.resume()
          resolve(answer.statusCode ?? 0)
        })
        sent.on('error', reject)
        if (!chunked) sent.setHeader('content-length', bytes)
        sent.write(body(bytes))
        sent.end()
      })
    server.effects.length = 0
    expect(await post(MAX_BODY_BYTES + 1, false)).toBe(413)
    expect(await post(MAX_BODY_BYTES + 1, true)).toBe(413)
    expect(server.effects).toEqual([])
    expect(await post(MAX_BODY_BYTES, false)).toBe(200)
    expect(await post(MAX_BODY_BYTES, true)).toBe(200)
    expect(server.effects).toEqual(['big', 'big'])
  })

  it('GU-63 JSON deeper than 64 levels, JSON that is cut, and wrong UTF-8 are refused', async () => {
    const post = async (body: string | Uint8Array<ArrayBuffer>) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${OWNER_TOKEN}` }
      return (await fetch(`${server.url}/api/effects`, { method: 'POST', headers, body })).status
    }
    const nested = (levels: number) => `{"name":"deep","a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    server.effects.length = 0
    expect(await post(nested(64))).toBe(200)
    expect(await post(nested(65))).toBe(400)
    expect(await post(nested(200_000))).toBe(400)
    expect(await post('{"name":"x"')).toBe(400)
    expect(await post('')).toBe(400)
    expect(await post(new Uint8Array([...Buffer.from('{"name":"'), 0xff, ...Buffer.from('"}')]))).toBe(400)
    expect(server.effects).toEqual(['deep'])
  })

  it('GU-62 every answer, refusals included, carries the strict headers', async () => {
    const answers = [
      await send('GET', '/', own()),
      await send('GET', '/api/status', own()),
      await send('GET', '/api/status', own(), bearer),
      await send('GET', '/nothing', own()),
      await send('GET', '/api/status', 'evil.example'),
    ]
    expect(answers.map((answer) => answer.status)).toEqual([200, 401, 200, 404, 403])
    for (const { headers } of answers) {
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      )
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
    }
    expect(answers[2]?.headers.get('cache-control')).toBe('no-store')
  })
})

it('GU-62 the local socket is the owner with any Host, and still reads JSON only', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kiki-guards-'))
  const socketPath = join(folder, 'kiki.sock')
  const server = await startOwnerServer({ socket: socketPath })
  const post = (type: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { host: 'kiki', 'content-type': type }
      const sent = request({ socketPath, method: 'POST', path: '/api/effects', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
      sent.on('error', reject)
      sent.end('{"name":"from the socket"}')
    })
  expect(await post('text/plain')).toBe(415)
  expect(await post('application/json')).toBe(200)
  expect(server.effects).toEqual(['from the socket'])
  await server.close()
  rmSync(folder, { recursive: true })
})

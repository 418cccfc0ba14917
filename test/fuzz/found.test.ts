import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readMessage } from '../../src/bridge/message.js'
import { startHost, type TestHost } from '../helpers/host.js'

let host: TestHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

/** Sends bytes to the local socket, and ends. @returns all that comes. */
async function say(text: string): Promise<string> {
  const socket = connect(host.socket)
  socket.end(text)
  let answer = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    answer += part
  })
  socket.on('error', () => {})
  await once(socket, 'close')
  return answer
}

const logged = () =>
  readFileSync(join(host.home, 'logs/kiki.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"level":50'))

it.each(['//', 'http://', '//x:99999', '*'])(
  'GU-66 an upgrade to %s is refused as unknown, and no bug',
  async (target) => {
    const answer = await say(
      `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\nAuthorization: Bearer x\r\n\r\n`,
    )
    expect(answer).toContain('"code":"not_found"')
    expect(logged()).toEqual([])
  },
)

it.each(['327.0.0.1', '.1:80', '127.0.0.1241321', '127.127.0.0.1:80'])(
  'GU-66 the Host %s, which is none, gets 400 on the local socket, with and without a body, and is no bug',
  async (name) => {
    const head = `Host: ${name}\r\nConnection: close\r\nContent-Type: application/json\r\n`
    expect(await say(`GET /api/status HTTP/1.1\r\n${head}\r\n`)).toMatch(/^HTTP\/1\.1 400 /)
    expect(await say(`POST /api/sessions HTTP/1.1\r\n${head}Content-Length: 2\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 400 /)
    expect(logged()).toEqual([])
  },
)

it.each(['Content-Length: 500\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{'])(
  'GU-66 a request that is cut off within its body (%j) is no bug',
  async (rest) => {
    await say(`POST /api/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${rest}`)
    // The host has dealt with it by the time it answers the next one.
    await host.api('GET', '/api/status')
    expect(logged()).toEqual([])
  },
)

it('GU-64 GU-66 a request that is nested too deep to be read is refused under its own id', () => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`
  const first = `{"jsonrpc":"2.0","id":"mine","method":"ping","params":${deep}}`
  const last = `{"method":"ping","params":${deep},"jsonrpc":"2.0","id":7}`
  expect(readMessage(Buffer.from(first))).toMatchObject({ kind: 'invalid', id: 'mine', code: -32700 })
  expect(readMessage(Buffer.from(last))).toMatchObject({ kind: 'invalid', id: 7, code: -32700 })
})

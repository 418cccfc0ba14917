import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { connect, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BrokenAnswer, exchange, parseAnswer } from '../../src/bridge/http-exchange.js'

let dir: string
let server: Server | ReturnType<typeof createNetServer> | undefined
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kx-'))
})
afterEach(async () => {
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
  rmSync(dir, { recursive: true, force: true })
})

const path = () => join(dir, 's')
const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
const late = () => new Error('late')

it('reads a real server: chunked, then with a length, over one connection', async () => {
  let count = 0
  server = createServer((_, response) => {
    if (count++ > 0) return void response.setHeader('content-length', 4).end('grö')
    response.write('one ')
    response.end('zwölf')
  })
  await new Promise<void>((resolve) => server?.listen(path(), resolve))
  const socket = connect(path())
  expect(await exchange(socket, GET, 5000, late)).toMatchObject({ status: 200, body: 'one zwölf', keepAlive: true })
  expect(await exchange(socket, GET, 5000, late)).toMatchObject({ status: 200, body: 'grö', keepAlive: true })
  socket.destroy()
})

it('a server that closes early, or answers never, is an error', async () => {
  server = createNetServer((socket) => {
    socket.on('data', (chunk) => {
      if (chunk.toString().startsWith('GET')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    })
  })
  await new Promise<void>((resolve) => server?.listen(path(), resolve))
  await expect(exchange(connect(path()), GET, 5000, late)).rejects.toThrow(BrokenAnswer)
  await expect(exchange(connect(path()), 'nothing', 20, late)).rejects.toThrow('late')
  await expect(exchange(connect(join(dir, 'none')), GET, 5000, late)).rejects.toMatchObject({ code: 'ENOENT' })
})

it('every prefix of an answer is incomplete, the whole is read, what follows is left over', () => {
  const answers = [
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc',
    'HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n',
  ]
  for (const answer of answers) {
    for (let end = 0; end < answer.length; end++) {
      expect(parseAnswer(Buffer.from(answer.slice(0, end)), false)).toBeUndefined()
    }
    expect(parseAnswer(Buffer.from(`${answer}more`), false)).toMatchObject({ body: 'abc', rest: Buffer.from('more') })
  }
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n{"first":"line"}'
  expect(parseAnswer(Buffer.from(upgrade), false)).toMatchObject({ status: 101, rest: Buffer.from('{"first":"line"}') })
  const untilClose = Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc')
  expect(parseAnswer(untilClose, false)).toBeUndefined()
  expect(parseAnswer(untilClose, true)).toMatchObject({ body: 'abc', keepAlive: false })
  expect(parseAnswer(Buffer.from('SSH-2.0-OpenSSH\r\n\r\n'), false)).toBeUndefined()
})

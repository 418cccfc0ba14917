import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call } from '../bridge/raw-client.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { ownerRouteList } from '../helpers/owner-routes.js'
import { openStream, type Stream } from '../helpers/stream.js'
import { type Watcher, watch } from '../helpers/watcher.js'

interface Question {
  id: string
  operation: string
  status: string
}

let host: TestHost
let watcher: Watcher
let stream: Stream
let token: string
let question: Question

const approvals = async () => (await host.api<{ approvals: Question[] }>('GET', '/api/approvals')).approvals

beforeAll(async () => {
  host = await startHost()
  watcher = await watch(host.socket)
  const connection = await host.connection()
  const session = await host.session(connection, { mode: 'manual' })
  const made = await host.api<{ token: string }>('POST', '/api/connections', { name: 't', kind: 'token' })
  token = made.token
  stream = await openStream(host.socket, { connection, session, bridge: 'bridge_00000000' })
  const write = { path: 'asked.txt', content: 'x', _kiki: { idempotency_key: 'k', wait_ms: 0 } }
  stream.send(call('asked', 'Write', write))
  await stream.answer('asked')
  question = (await approvals())[0] as Question
  expect(question.status).toBe('waiting_approval')
})
afterAll(async () => {
  stream.close()
  await watcher.close()
  await host.stop()
})

/** Every route by which an answer could be given or a question seen, with the one that is open in it. */
function routes(): { method: string; path: string }[] {
  const found = ownerRouteList().filter(({ path }) => path.startsWith('/api/approvals'))
  expect(found.map(({ method, path }) => `${method} ${path}`)).toEqual(
    expect.arrayContaining(['GET /api/approvals', 'POST /api/approvals/:id/approve', 'POST /api/approvals/:id/deny']),
  )
  const asking = { method: 'GET', path: '/api/events?approvals=1' }
  return [...found, asking].map(({ method, path }) => ({ method, path: path.replace(':id', question.id) }))
}

function statusOf(where: object, { method, path }: { method: string; path: string }, headers: Record<string, string>) {
  return new Promise<number>((resolve, reject) => {
    const body = method === 'GET' ? '' : '{}'
    const length = { 'content-type': 'application/json', 'content-length': String(body.length) }
    const sent = request(
      { ...where, method, path, headers: { ...(body === '' ? {} : length), ...headers } },
      (answer) => {
        resolve(answer.statusCode ?? 0)
        answer.destroy()
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

async function nothingWasAnswered(): Promise<void> {
  expect(await approvals()).toMatchObject([{ id: question.id, status: 'waiting_approval', answer: null }])
  expect(existsSync(join(host.workspace, 'asked.txt'))).toBe(false)
}

it('AP-07 no approval route answers to the credential of a bridge or of a token connection, by the listener or the socket', async () => {
  const { hostname, port } = new URL(host.ownerUrl)
  const consumers = (await host.api<{ consumers: number }>('GET', '/api/approvals')).consumers
  for (const credential of [stream.credential, token]) {
    for (const route of routes()) {
      for (const where of [{ hostname, port }, { socketPath: host.socket }]) {
        const page = { 'x-kiki-page': credential, cookie: `kiki_owner=${credential}` }
        const ways: Record<string, string>[] = [
          { authorization: `Bearer ${credential}` },
          { authorization: `bearer ${credential}`, ...page },
        ]
        for (const headers of ways) {
          expect([await statusOf(where, route, headers), route]).toEqual([401, route])
        }
      }
      const inCookie = { 'x-kiki-page': credential, cookie: `kiki_owner=${credential}` }
      expect([await statusOf({ hostname, port }, route, inCookie), route]).toEqual([401, route])
    }
  }
  expect((await host.api<{ consumers: number }>('GET', '/api/approvals')).consumers).toBe(consumers)
  await nothingWasAnswered()
  // The same requests count when they are the owner's.
  const owner = readFileSync(join(host.home, 'owner.token'), 'utf8').trim()
  const asOwner = { authorization: `Bearer ${owner}` }
  for (const where of [{ hostname, port }, { socketPath: host.socket }])
    expect(await statusOf(where, { method: 'GET', path: '/api/approvals' }, asOwner)).toBe(200)
})

it('AP-07 nothing that a bridge stream can say approves, and the host never asks the client for an approval', async () => {
  const { id, operation } = question
  let next = 0
  const ask = async (method: string, params: object) => {
    const key = `try-${next++}`
    stream.send({ jsonrpc: '2.0', id: key, method, params })
    return stream.answer(key)
  }
  for (const method of [
    'approvals/approve',
    'approvals/list',
    'elicitation/create',
    'sampling/createMessage',
    'tasks/result',
  ])
    expect(await ask(method, { id, approval_id: id, action: 'accept', content: {} })).toMatchObject({
      error: { code: expect.any(Number) },
    })
  const tools = ['kiki_approvals', 'approve', 'kiki_approve', 'approvals', 'POST /api/approvals']
  for (const name of tools) {
    const answer = await ask('tools/call', { name, arguments: { id, scope: 'always' } })
    expect(answer?.result).toMatchObject({ isError: true, _meta: { 'kiki/error': { code: 'tool_unavailable' } } })
  }
  for (const action of ['approve', 'deny', 'answer', 'resolve']) {
    const answer = await ask('tools/call', { name: 'kiki_operation', arguments: { action, operation_id: operation } })
    expect(answer?.result).toMatchObject({ _meta: { 'kiki/error': { code: 'invalid_arguments' } } })
  }
  // The stream came out of an HTTP connection; it is none any more.
  stream.send(
    `POST /api/approvals/${id}/approve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\n`,
  )
  stream.send(
    call('again', 'Write', {
      path: 'asked.txt',
      content: 'x',
      _kiki: { idempotency_key: 'k', wait_ms: 0, approved: true },
    }),
  )
  expect(await stream.answer('again')).toMatchObject({ result: { isError: true } })
  expect(await ask('ping', {})).toMatchObject({ result: {} })
  expect(stream.messages.filter(({ method, id: asked }) => method !== undefined && asked !== undefined)).toEqual([])
  await nothingWasAnswered()
})

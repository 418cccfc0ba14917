import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Answer, call, type RawClient, startRaw } from '../bridge/raw-client.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

let host: TestHost
let connection: string
let ref: string
let client: RawClient

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  rmSync(host.workspace, { recursive: true, force: true })
  mkdirSync(host.workspace)
  connection = await host.connection()
  ref = await host.session(connection)
  client = bridge()
  return () => client.child.kill('SIGKILL')
})

const bridge = () => startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home, '--session', ref])

/** The `_meta` that makes a request one of the 2026 era. */
const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const ERAS = [
  ['2025-11-25', undefined],
  ['2026-07-28', MODERN],
] as const
type Meta = Record<string, unknown> | undefined

function send(id: number | string, name: string, args: object, meta: Meta): void {
  const request = call(id, name, args)
  client.send({ ...request, params: { ...request.params, ...(meta === undefined ? {} : { _meta: meta }) } })
}
const progress = () =>
  client.messages
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => params as unknown as Progress)
interface Progress {
  progressToken: string | number
  progress: number
  message: string
}
const operationOf = ({ result }: Answer) =>
  (result as { _meta: { 'kiki/operation': { operation_id: string; status: string } } })._meta['kiki/operation']

interface Row {
  id: string
  tool: string
  status: string
}
const rows = async () => (await host.api<{ operations: Row[] }>('GET', `/api/operations?session=${ref}`)).operations

/** Asks the host until the newest operation of a tool has one of these states. */
async function reached(tool: string, ...states: string[]): Promise<Row> {
  for (;;) {
    const row = (await rows()).find((one) => one.tool === tool)
    if (row !== undefined && states.includes(row.status)) return row
  }
}

describe.each(ERAS)('era %s', (_, era) => {
  it('OP-09 FC-T09 while a call waits, whoever gave a token is told in words at least every 10 s, nobody else', async () => {
    if (era === undefined) await client.open()
    const release = await holdSearches(host, connection, ref)
    try {
      const began = performance.now()
      send(1, 'Grep', { pattern: 'x', _kiki: { wait_ms: 11_500, idempotency_key: 'k' } }, { ...era, progressToken: 0 })
      send(2, 'Grep', { pattern: 'y', _kiki: { wait_ms: 11_500 } }, { ...era, progressToken: '' })
      send(3, 'Grep', { pattern: 'z', _kiki: { wait_ms: 11_500 } }, era)
      const told = await client.next(({ method }) => method === 'notifications/progress')
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(told.params?.message).toMatch(/^Grep is still running \(\d+ s\)$/)
      const answers = await Promise.all([1, 2, 3].map((id) => client.answer(id)))
      const ids = answers.map((answer) => operationOf(answer).operation_id)
      for (const token of [0, '']) {
        const mine = progress().filter(({ progressToken }) => progressToken === token)
        expect(mine.length).toBeGreaterThanOrEqual(2)
        expect(mine.map((one) => one.progress)).toEqual(mine.map((one) => one.progress).toSorted((a, b) => a - b))
        expect(new Set(mine.map((one) => one.progress)).size).toBe(mine.length)
      }
      expect(new Set(progress().map(({ progressToken }) => progressToken))).toEqual(new Set([0, '']))
      // The same for kiki_operation wait.
      const wait = { action: 'wait', operation_id: ids[0], wait_ms: 20_000 }
      send(4, 'kiki_operation', wait, { ...era, progressToken: 'again' })
      await client.next((message) => (message.params as Partial<Progress> | undefined)?.progressToken === 'again')
      release()
      expect(operationOf(await client.answer(4)).status).toBe('completed')
      const until = client.messages.length
      send(5, 'Glob', { pattern: '*' }, { ...era, progressToken: 'short' })
      await client.answer(5)
      expect(client.messages.slice(until).filter(({ method }) => method === 'notifications/progress')).toEqual([])
    } finally {
      release()
    }
  })

  it('OP-12 GU-20 a cancelled plain read is stopped and recorded as cancelled', async () => {
    if (era === undefined) await client.open()
    slowText()
    send(1, 'Grep', { ...SLOW, _kiki: { wait_ms: 45_000 } }, era)
    const running = await reached('Grep', 'running')
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    expect((await reached('Grep', 'cancelled', 'completed')).status).toBe('cancelled')
    expect((await rows()).map(({ id }) => id)).toEqual([running.id])
  })

  it('GU-20 FC-T07 a plain read is stopped when its bridge is gone', async () => {
    if (era === undefined) await client.open()
    slowText()
    send(1, 'Grep', { ...SLOW, _kiki: { wait_ms: 45_000 } }, era)
    await reached('Grep', 'running')
    client.child.kill('SIGKILL')
    expect((await reached('Grep', 'cancelled', 'completed')).status).toBe('cancelled')
  })

  it('FC-T15 cancelling nothing, the finished or the unknown changes nothing', async () => {
    if (era === undefined) await client.open()
    send(1, 'Write', { path: 'a.txt', content: 'x', _kiki: { idempotency_key: 'k' } }, era)
    await client.answer(1)
    for (const params of [{ requestId: 1 }, { requestId: 999 }, {}, undefined])
      client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', ...(params && { params }) })
    send(2, 'Read', { path: 'a.txt' }, era)
    expect((await client.answer(2)).result?.isError).toBeFalsy()
    expect((await rows()).map(({ status }) => status)).toEqual(['completed', 'completed'])
  })
})

/** Many seconds of real work for ripgrep: Unicode word boundaries over text that is not ASCII. */
const SLOW = { pattern: '\\b(\\w+\\s+){60}\\b[a-v]{3}(\\w+\\s+){60}\\b', multiline: true }
function slowText(): void {
  const words = Array.from({ length: 400_000 }, (_, i) => `é${(i * 7919) % 100_003}`).join(' ')
  writeFileSync(join(host.workspace, 'words.txt'), words)
}

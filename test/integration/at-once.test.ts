import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

let host: TestHost
let connection: string
let ref: string
let clients: TestClient[]

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  rmSync(host.workspace, { recursive: true, force: true })
  mkdirSync(host.workspace)
  connection = await host.connection()
  ref = await host.session(connection)
  clients = await Promise.all(
    (['v1', 'v2 2026-07-28'] as const).map((era) => connectClient(host, connection, era, { session: ref })),
  )
  return () => Promise.all(clients.map((client) => client.close()))
})

interface About {
  operation_id: string
  status: string
  replayed?: boolean
}
const about = (result: CallResult) => meta<About>(result, 'kiki/operation')

/** The same call 64 times at once, from both bridges by turns. */
function together(tool: string, args: Record<string, unknown>): Promise<CallResult[]> {
  const call = (client: TestClient) => client.call(tool, { ...args, _kiki: { idempotency_key: 'same' } })
  return Promise.all(Array.from({ length: 64 }, (_, i) => call(clients[i % 2] as TestClient)))
}

/** Afterwards, from both bridges: the line of OP-02, then exactly what was saved. */
async function expectReplays(tool: string, args: Record<string, unknown>, first: CallResult): Promise<void> {
  for (const client of clients) {
    const again = await client.call(tool, { ...args, _kiki: { idempotency_key: 'same' } })
    expect(about(again)).toEqual({ ...about(first), replayed: true })
    expect(again.content[0]?.text).toMatch(/^Replayed: nothing ran now\./)
    expect(again.content.slice(1)).toEqual(first.content)
    expect(again.isError ?? false).toBe(first.isError ?? false)
    expect(meta(again, 'kiki/error')).toEqual(meta(first, 'kiki/error'))
    expect(meta(again, 'kiki/result')).toEqual(meta(first, 'kiki/result'))
  }
}

const rows = async () =>
  (await host.api<{ operations: { id: string; status: string }[] }>('GET', `/api/operations?session=${ref}`)).operations

describe('64 duplicates at once from two bridges', () => {
  it('GU-11 OP-04 FC-O04 a call that fails: one operation, and every later answer is the saved failure', async () => {
    const args = { path: 'none.txt', old_string: 'a', new_string: 'b' }
    const answers = await together('Edit', args)
    expect(new Set(answers.map((answer) => about(answer).operation_id)).size).toBe(1)
    expect(answers.every((answer) => answer.isError === true && about(answer).status === 'failed')).toBe(true)
    const first = answers.find((answer) => about(answer).replayed !== true) as CallResult
    writeFileSync(join(host.workspace, 'none.txt'), 'a')
    await expectReplays('Edit', args, first)
    expect(await rows()).toHaveLength(1)
  })

  it('GU-11 OP-04 a call that succeeds: one effect, one operation, and every later answer is the saved result', async () => {
    writeFileSync(join(host.workspace, 'count.txt'), '.')
    const args = { path: 'count.txt', old_string: '.', new_string: '!.' }
    const answers = await together('Edit', args)
    expect(new Set(answers.map((answer) => about(answer).operation_id)).size).toBe(1)
    const first = answers.find((answer) => about(answer).replayed !== true) as CallResult
    await expectReplays('Edit', args, first)
    const read = await clients[0]?.call('Read', { path: 'count.txt' })
    expect(read && textOf(read)).toContain('1\t!.')
  })

  it('GU-11 FC-O04 while the first one runs, a duplicate is told so at once, under the one operation id', async () => {
    writeFileSync(join(host.workspace, 'a.txt'), 'a needle')
    const release = await holdSearches(host, connection, ref)
    try {
      const call = (i: number) =>
        clients[i % 2]?.call('Grep', { pattern: 'needle', _kiki: { idempotency_key: 'same', wait_ms: 0 } })
      const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => call(i)))
      const facts = answers.map((answer) => answer && about(answer))
      expect(new Set(facts.map((fact) => fact?.operation_id)).size).toBe(1)
      expect(new Set(facts.map((fact) => fact?.status))).toEqual(new Set(['running']))
    } finally {
      release()
    }
  })
})

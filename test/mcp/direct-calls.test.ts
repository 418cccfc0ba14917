import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDirectCalls } from '../../src/mcp/direct-calls.js'
import type { ServerDeps } from '../../src/mcp/server.js'
import { type RawClient, startRaw } from '../bridge/raw-client.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'

let host: TestHost
let raw: RawClient
beforeAll(async () => {
  host = await startHost()
  const connection = await host.connection({ ceiling: 'full', tools: ['files'] })
  const session = await host.session(connection, { mode: 'full' })
  writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\n')
  raw = startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home, '--session', session])
  await raw.open()
})
afterAll(async () => {
  raw.child.stdin?.end()
  await raw.exit
  await host.stop()
})

let last = 0
async function ask(params: Record<string, unknown>, meta?: Record<string, unknown>) {
  const id = `ask-${++last}`
  raw.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, ...(meta && { _meta: meta }) } })
  return JSON.parse(JSON.stringify(await raw.answer(id)), (key, value) =>
    key === 'operation_id' || key === 'id' ? 'the same' : value,
  )
}

describe('a call that goes straight to the gate', () => {
  it.each([
    ['a result', { name: 'Read', arguments: { path: 'a.txt' } }],
    ['a failure', { name: 'Read', arguments: { path: 'none' } }],
    ['a refusal', { name: 'Read', arguments: { path: 5 } }],
    ['no such tool', { name: 'Nothing', arguments: {} }],
    ['no arguments', { name: 'List' }],
    ['a control tool', { name: 'kiki_session', arguments: { action: 'list' } }],
  ])('GU-64 is answered as by the SDK: %s', async (_, params) => {
    // A `_meta` of the protocol's own is what the short way leaves to the SDK.
    const bySdk = await ask(params, { 'io.modelcontextprotocol/related-task': { taskId: 'x' } })
    const direct = await ask(params)
    expect(direct.result).toBeDefined()
    expect({ ...direct, result: { ...direct.result, structuredContent: undefined } }).toEqual({
      ...bySdk,
      result: { ...bySdk.result, structuredContent: undefined },
    })
  })
})

describe('what it takes', () => {
  const take = (message: unknown, known = true) => {
    const caller = known ? { connectionId: 'client_x', holder: 'bridge:x' } : undefined
    const deps = { log: { debug() {}, error() {} } } as unknown as ServerDeps
    return createDirectCalls(deps, () => caller, { send: async () => {} }).take(message)
  }
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'Nothing', arguments: {} } }

  it('GU-64 takes a plain call, and none before the client has said who it is', () => {
    expect(take(call)).toBe(true)
    expect(take(call, false)).toBe(false)
  })

  it.each([
    ['another method', { ...call, method: 'tools/list' }],
    ['an unknown member', { ...call, extra: 1 }],
    ['an id that is none', { ...call, id: 1.5 }],
    ['a task', { ...call, params: { ...call.params, task: {} } }],
    ['arguments that are a list', { ...call, params: { ...call.params, arguments: [] } }],
    ['a progress token that is none', { ...call, params: { ...call.params, _meta: { progressToken: {} } } }],
    [
      'the cancelling of a call that it does not serve',
      { method: 'notifications/cancelled', params: { requestId: 1 } },
    ],
    ['a batch', [call]],
  ])('GU-64 leaves to the SDK: %s', (_, message) => {
    expect(take(message)).toBe(false)
  })
})

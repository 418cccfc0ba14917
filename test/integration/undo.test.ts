import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { ApiFailure, startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'

let host: TestHost
let connection: string
let client: TestClient
let session: string

beforeAll(async () => {
  host = await startHost()
  connection = await host.connection()
  client = await connectClient(host, connection, 'v2 auto', { args: ['--no-start'] })
})
afterAll(async () => {
  await client.close()
  await host.stop()
})

interface Change {
  operation: string
  seq: number
  tool: string
  by: string
  kind: string
  path: string
  diff?: string
  undone_by: string | null
}
interface Changes {
  changes: Change[]
  note: string
}

const at = (name: string) => join(host.workspace, name)

/** One keyed call in a session; its operation id, and what it said. */
async function call(name: string, args: Record<string, unknown>, ref = session) {
  const result = await client.call(name, { ...args, _kiki: { session_ref: ref, idempotency_key: crypto.randomUUID() } })
  const id = meta<{ operation_id: string } | undefined>(result, 'kiki/operation')?.operation_id ?? ''
  return { id, result, text: textOf(result) }
}

it('FI-14 a client lists its changes and takes them back; a repeated undo with its key runs once', async () => {
  session = await host.session(connection)
  await call('Write', { path: 'a', content: 'one\n' })
  const edited = await call('Edit', { path: 'a', old_string: 'one', new_string: 'two' })
  const listed = await client.call('Changes', { _kiki: { session_ref: session } })
  expect(textOf(listed)).toContain(`${edited.id}  Edit`)
  const diff = await client.call('Changes', { operation_id: edited.id, _kiki: { session_ref: session } })
  expect(textOf(diff)).toContain('-one\n+two')
  const key = { session_ref: session, idempotency_key: 'undo once' }
  const undone = await client.call('Undo', { _kiki: key })
  expect(undone.isError, textOf(undone)).toBeFalsy()
  await client.call('Undo', { _kiki: key })
  expect(readFileSync(at('a'), 'utf8')).toBe('one\n')
  const undoId = meta<{ operation_id: string }>(undone, 'kiki/operation').operation_id
  expect((await call('Undo', { operation_id: undoId })).text).toContain('restored a')
  expect(readFileSync(at('a'), 'utf8')).toBe('two\n')
})

it("FI-14 GU-13 another session's operation is not there to be shown or undone", async () => {
  session = await host.session(connection)
  const other = await host.session(connection)
  const { id } = await call('Write', { path: 'foreign', content: 'x' })
  for (const [tool, args] of [
    ['Undo', { operation_id: id }],
    ['Undo', { since: id }],
    ['Changes', { operation_id: id }],
  ] as const) {
    const { result } = await call(tool, args, other)
    expect(meta(result, 'kiki/error')).toMatchObject({ code: 'operation_unavailable' })
  }
  expect(existsSync(at('foreign'))).toBe(true)
})

it('FI-14 CL-08 the owner sees and undoes one operation, whose undo is an operation of the session by the owner', async () => {
  session = await host.session(connection)
  writeFileSync(at('b'), 'old\n')
  const { id } = await call('Edit', { path: 'b', old_string: 'old', new_string: 'new' })
  const seen = await host.api<Changes>('GET', `/api/changes?operation=${id}&diff=true`)
  expect(seen.changes).toMatchObject([{ operation: id, kind: 'modify', path: at('b'), by: 'client', undone_by: null }])
  expect(seen.changes[0]?.diff).toContain('-old\n+new')
  expect(seen.note).toContain('commands are not recorded')
  const { code, value } = await kikiJson(host.home, ['undo', id])
  expect([code, value]).toMatchObject([0, { session_ref: session, undone: [{ operation_id: id, did: 'write' }] }])
  expect(readFileSync(at('b'), 'utf8')).toBe('old\n')
  const row = await host.api('GET', `/api/operations/${value.operation_id}`)
  expect(row).toMatchObject({
    tool: 'Undo',
    session_ref: session,
    status: 'completed',
    client: null,
    decision: { by: 'owner' },
    changes: [{ kind: 'modify', undoes: { operationId: id, seq: 0 } }],
  })
  const { value: listed } = await kikiJson(host.home, ['changes', session])
  expect(listed.changes.map((one: Change) => [one.tool, one.by, one.undone_by])).toEqual([
    ['Undo', 'owner', null],
    ['Edit', 'client', value.operation_id],
  ])
  await kikiJson(host.home, ['undo', value.operation_id])
  expect(readFileSync(at('b'), 'utf8')).toBe('new\n')
})

it('FI-14 CL-08 a whole session is undone although it is closed and its connection revoked, without --yes', async () => {
  const revoked = await host.connection({}, 'revoked')
  const own = await connectClient(host, revoked, 'v1')
  const ref = await host.session(revoked)
  for (const [tool, args] of [
    ['MakeDirectory', { path: 'made/deep' }],
    ['Write', { path: 'made/deep/file', content: '1' }],
    ['Move', { from: 'made/deep/file', to: 'made/moved' }],
  ] as const) {
    const done = await own.call(tool, { ...args, _kiki: { session_ref: ref, idempotency_key: tool } })
    expect(done.isError, textOf(done)).toBeFalsy()
  }
  await own.close()
  await host.api('POST', `/api/sessions/${ref}/close`)
  await host.api('POST', `/api/connections/${revoked}/revoke`)
  const dry = await kikiJson(host.home, ['undo', ref, '--dry-run'])
  expect([dry.code, dry.value.undone.length]).toEqual([0, 4])
  expect(existsSync(at('made/moved'))).toBe(true)
  const { code, value } = await kikiJson(host.home, ['undo', ref])
  expect([code, value.undone.map((one: { did: string }) => one.did)]).toEqual([
    0,
    ['move', 'remove', 'remove', 'remove'],
  ])
  expect(existsSync(at('made'))).toBe(false)
  const shown = await runKiki(host.home, ['changes', ref, '--diff'])
  expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('Changes made by commands are not recorded')])
})

it('FI-14 CL-08 a conflict exits 1 with the difference, names the recorded attempt and changes nothing', async () => {
  session = await host.session(connection)
  const { id } = await call('Write', { path: 'c', content: 'kiki\n' })
  await call('Edit', { path: 'c', old_string: 'kiki', new_string: 'later' })
  const { code, value } = await kikiJson(host.home, ['undo', id])
  expect([code, value.error.code]).toEqual([1, 'conflict'])
  expect(value.error.message).toContain('-kiki\n+later')
  expect(await host.api('GET', `/api/operations/${value.error.data.operation_id}`)).toMatchObject({ status: 'failed' })
  expect(readFileSync(at('c'), 'utf8')).toBe('later\n')
  expect((await runKiki(host.home, ['undo', 'op_none'])).code).toBe(1)
  expect((await runKiki(host.home, ['undo', id, '--since', id])).code).toBe(2)
  await expect(host.api('GET', '/api/changes')).rejects.toBeInstanceOf(ApiFailure)
})

it('FI-14 a read-only session may list but not undo', async () => {
  session = await host.session(connection)
  await call('Write', { path: 'r', content: 'r' })
  await host.api('PATCH', `/api/sessions/${session}`, { mode: 'read-only' })
  expect((await client.call('Changes', { _kiki: { session_ref: session } })).isError).toBeFalsy()
  expect(meta((await call('Undo', {})).result, 'kiki/error')).toMatchObject({ code: 'permission_denied' })
  expect(existsSync(at('r'))).toBe(true)
})

it('FI-14 GU-05 what a host that died had journalled is listed and undone after the restart', async () => {
  session = await host.session(connection)
  for (const name of readdirSync(host.workspace)) rmSync(at(name), { recursive: true })
  for (let index = 0; index < 400; index += 1) writeFileSync(at(`f${index}`), `${index}`)
  await call('Move', { from: 'f0', to: 'tree/f0' })
  for (let index = 1; index < 400; index += 1) writeFileSync(at(`tree/f${index}`), `${index}`)
  const running = client
    .call('Delete', { path: 'tree', recursive: true, _kiki: { session_ref: session, idempotency_key: 'cut off' } })
    .catch(() => undefined)
  while (readdirSync(at('tree')).length > 390) await new Promise((resolve) => setImmediate(resolve))
  await host.kill()
  expect(readdirSync(at('tree')).length).toBeGreaterThan(0)
  await host.restart()
  await running
  const { operations } = await host.api<{ operations: { id: string; tool: string; status: string }[] }>(
    'GET',
    `/api/operations?session=${session}`,
  )
  expect(operations[0]).toMatchObject({ tool: 'Delete', status: 'outcome_unknown' })
  const { code } = await kikiJson(host.home, ['undo', operations[0]?.id ?? ''])
  expect(code).toBe(0)
  expect(
    readdirSync(at('tree'))
      .map((name) => readFileSync(at(`tree/${name}`), 'utf8'))
      .sort(),
  ).toEqual(Array.from({ length: 400 }, (_, index) => `${index}`).sort())
})

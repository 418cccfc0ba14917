import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, type TestClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Watcher, watch } from '../helpers/watcher.js'

let host: TestHost
let connection: string
let ref: string
let client: TestClient
let watcher: Watcher

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  connection = await host.connection({ ceiling: 'full' })
  ref = await host.session(connection, { mode: 'manual' })
  client = await connectClient(host, connection, 'v1', { session: ref })
  watcher = await watch(host.socket)
  writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\n')
  return async () => {
    await client.close()
    await watcher.close()
  }
})

const content = (name = 'a.txt') => readFileSync(join(host.workspace, name), 'utf8')
const text = (result: CallResult) => result.content.map((block) => block.text ?? '').join('\n')
const errorCode = (result: CallResult) => (result._meta?.['kiki/error'] as { code: string } | undefined)?.code
const operation = (result: CallResult) =>
  result._meta?.['kiki/operation'] as { operation_id: string; status: string; replayed?: boolean }
let keys = 0
/** An Edit of `two`, answered by its receipt at once. */
const edit = (fields: Record<string, unknown> = {}, key = `k${++keys}`) =>
  client.call('Edit', {
    path: 'a.txt',
    old_string: 'two',
    new_string: '2',
    _kiki: { idempotency_key: key, wait_ms: 0 },
    ...fields,
  })
const wait = (id: string, ms = 20_000) =>
  client.call('kiki_operation', { action: 'wait', operation_id: id, wait_ms: ms })

interface Question {
  id: string
  operation: string
  status: string
  answer: string | null
  changed: boolean
  preview: string
  tool: string
  arguments: Record<string, unknown>
  shown: { name: string; value: string }[]
  why: { by: string; reason: string }
  covers: { kind: string; rule: string }[]
  session: { ref: string; workspace: string }
  client: { name: string }
}
interface Waiting {
  approvals: Question[]
  consumers: number
}
const waiting = async () => {
  const { approvals } = await host.api<Waiting>('GET', '/api/approvals')
  return approvals.filter(({ session }) => session.ref === ref)
}
/** Resolves once the host has seen that nobody takes questions any more. */
async function unwatched(): Promise<void> {
  await watcher.close()
  while ((await host.api<Waiting>('GET', '/api/approvals')).consumers > 0);
}
const answer = (id: string, how: 'approve' | 'deny', body: object = {}) =>
  host.api<Question>('POST', `/api/approvals/${id}/${how}`, body)
async function asked(): Promise<Question> {
  const { approvalId } = await watcher.next((event, data) => event === 'approval.changed' && data.state === 'asked')
  return host.api<Question>('GET', `/api/approvals/${approvalId}`)
}

describe('asking', () => {
  it('AP-01 without a live consumer it is refused at once, nothing waits, and the key stays free', async () => {
    await unwatched()
    const refused = await edit({}, 'free')
    expect(errorCode(refused)).toBe('approval_unavailable')
    expect(text(refused)).toContain('kiki approvals watch')
    expect(await waiting()).toEqual([])
    watcher = await watch(host.socket, false)
    expect(errorCode(await edit({}, 'free'))).toBe('approval_unavailable')
    await unwatched()
    watcher = await watch(host.socket)
    expect(operation(await edit({}, 'free')).status).toBe('waiting_approval')
    await answer((await asked()).id, 'deny')
  })

  it('AP-02 AP-03 the caller gets a receipt, the owner sees all of it, an approval runs it once and the caller hears', async () => {
    const receipt = await edit()
    expect(operation(receipt).status).toBe('waiting_approval')
    expect(text(receipt)).toContain('approval')
    const question = await asked()
    expect(question).toMatchObject({
      tool: 'Edit',
      arguments: { path: 'a.txt', old_string: 'two', new_string: '2' },
      session: { workspace: host.workspace },
      why: { by: 'session.mode' },
      covers: [{ kind: `Edit:${host.workspace}` }],
    })
    expect(question.client.name).not.toBe('')
    expect(question.preview).toContain('-two\n+2')
    expect(content()).toBe('one\ntwo\n')
    const waited = wait(operation(receipt).operation_id)
    expect((await answer(question.id, 'approve')).changed).toBe(true)
    const done = await waited
    expect(done.isError).toBeFalsy()
    expect(operation(done).status).toBe('completed')
    expect(content()).toBe('one\n2\n')
  })

  it('AP-04 a denial with a message reaches the client; the key replays it', async () => {
    const receipt = await edit({}, 'denied')
    const waited = wait(operation(receipt).operation_id)
    await answer((await asked()).id, 'deny', { message: 'Use the other file.' })
    const denied = await waited
    expect(errorCode(denied)).toBe('approval_denied')
    expect(text(denied)).toContain('Use the other file.')
    expect(errorCode(await edit({}, 'denied'))).toBe('approval_denied')
    expect(content()).toBe('one\ntwo\n')
  })

  it('AP-06 approving twice, and after a denial or a cancel, does nothing and says so', async () => {
    const first = await edit()
    const one = await asked()
    await answer(one.id, 'approve')
    await wait(operation(first).operation_id)
    expect((await answer(one.id, 'approve')).changed).toBe(false)
    expect(await answer(one.id, 'deny')).toMatchObject({ changed: false, answer: 'approved' })
    const second = await edit({ old_string: 'one' })
    const two = await asked()
    await client.call('kiki_operation', { action: 'cancel', operation_id: operation(second).operation_id })
    expect(await answer(two.id, 'approve')).toMatchObject({ changed: false, status: 'cancelled', answer: null })
    expect(content()).toBe('one\n2\n')
  })

  it('AP-06 two subscribers see each other’s answer', async () => {
    const other = await watch(host.socket)
    await edit()
    const question = await asked()
    await answer(question.id, 'deny')
    const seen = await other.next((event, data) => event === 'approval.changed' && data.state === 'denied')
    expect(seen.approvalId).toBe(question.id)
    await other.close()
  })

  it('OP-02 a repeated key joins the one that waits; a read is not asked about', async () => {
    const first = await edit({}, 'same')
    const again = await edit({}, 'same')
    expect(operation(again).operation_id).toBe(operation(first).operation_id)
    expect(await waiting()).toHaveLength(1)
    expect((await client.call('Read', { path: 'a.txt' })).isError).toBeFalsy()
    await answer((await asked()).id, 'deny')
  })
})

describe('what an approval covers', () => {
  it('AP-04 GU-33 the same kind for this session: tool and folder, not another folder, tool or session', async () => {
    const receipt = await edit()
    await answer((await asked()).id, 'approve', { scope: 'session' })
    await wait(operation(receipt).operation_id)
    expect(operation(await edit({ old_string: 'one', new_string: 'uno' })).status).not.toBe('waiting_approval')
    const write = (path: string) =>
      client.call('Write', { path, content: 'x', _kiki: { idempotency_key: `w${++keys}`, wait_ms: 0 } })
    expect(operation(await write('b.txt')).status).toBe('waiting_approval')
    expect(operation(await edit({ path: 'sub/a.txt' })).status).toBe('waiting_approval')
    const other = await host.session(connection, { mode: 'manual' })
    const key = { idempotency_key: `o${++keys}`, wait_ms: 0, session_ref: other }
    const there = await client.call('Edit', { path: 'a.txt', old_string: 'uno', new_string: '1', _kiki: key })
    expect(operation(there).status).toBe('waiting_approval')
    for (const { id } of (await host.api<Waiting>('GET', '/api/approvals')).approvals) await answer(id, 'deny')
  })

  it('AP-04 always: an owner rule beside those of config.toml, for this connection and workspace', async () => {
    await edit()
    const question = await asked()
    await answer(question.id, 'approve', { scope: 'always' })
    const { rules, own } = await host.api<{ rules: { pattern: string; connection: string }[]; own: { id: number }[] }>(
      'GET',
      '/api/policy/rules',
    )
    expect(rules).toContainEqual(expect.objectContaining({ pattern: question.covers[0]?.rule, connection }))
    const other = await host.session(connection, { mode: 'manual' })
    const key = { idempotency_key: `a${++keys}`, session_ref: other }
    const done = await client.call('Edit', { path: 'a.txt', old_string: 'one', new_string: '1', _kiki: key })
    expect(operation(done).status).toBe('completed')
    const below = { idempotency_key: `a${++keys}`, session_ref: other, wait_ms: 0 }
    const deeper = await client.call('Edit', { path: 'sub/a.txt', old_string: 'x', new_string: '1', _kiki: below })
    expect(operation(deeper).status).toBe('waiting_approval')
    for (const { id } of own) await host.api('DELETE', `/api/policy/rules/${id}`)
  })
})

describe('an approval and place', () => {
  it('AP-05 a link that is put in the way after the question leads a yes nowhere else', async () => {
    for (const folder of ['d', 'd2']) {
      mkdirSync(join(host.workspace, folder), { recursive: true })
      writeFileSync(join(host.workspace, folder, 'x.txt'), folder)
    }
    const key = { idempotency_key: `l${++keys}`, wait_ms: 0 }
    const receipt = await client.call('Write', { path: 'd/x.txt', content: 'new', _kiki: key })
    const question = await asked()
    rmSync(join(host.workspace, 'd'), { recursive: true })
    symlinkSync('d2', join(host.workspace, 'd'))
    await answer(question.id, 'approve')
    expect(errorCode(await wait(operation(receipt).operation_id))).toBe('conflict')
    expect(content('d2/x.txt')).toBe('d2')
    rmSync(join(host.workspace, 'd'))
  })
})

describe('an approval and time', () => {
  it('AP-02 FC-O13 the consumer closes: the operation waits on, and is never shown as denied', async () => {
    const receipt = await edit()
    const { id } = await asked()
    await unwatched()
    const seen = await client.call('kiki_operation', { action: 'get', operation_id: operation(receipt).operation_id })
    expect(operation(seen).status).toBe('waiting_approval')
    watcher = await watch(host.socket)
    expect((await waiting()).map((one) => one.id)).toEqual([id])
    await answer(id, 'approve')
    await wait(operation(receipt).operation_id)
    expect(content()).toBe('one\n2\n')
  })

  it.each(['stop', 'kill'] as const)(
    'AP-02 FC-O11 FC-O06 after a %s the question is there as it was; approved with no client there, it runs once',
    async (how) => {
      const receipt = await edit({}, `over ${how}`)
      const before = await asked()
      await client.close()
      if (how === 'kill') await host.kill()
      else {
        host.process.kill('SIGTERM')
        await watcher.ended
        await new Promise((resolve) => host.process.once('exit', resolve))
      }
      await host.restart()
      const [after] = await waiting()
      expect(after).toMatchObject({ id: before.id, operation: before.operation, arguments: before.arguments })
      watcher = await watch(host.socket)
      await answer(before.id, 'approve')
      await watcher.next((event, data) => event === 'operation.changed' && data.status === 'completed')
      expect(content()).toBe('one\n2\n')
      client = await connectClient(host, connection, 'v1', { session: ref })
      const read = await wait(operation(receipt).operation_id)
      expect(operation(read).status).toBe('completed')
    },
  )

  it('AP-08 FC-O09 another policy cancels what waits, and the old question authorises nothing', async () => {
    const receipt = await edit()
    const { id } = await asked()
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { ceiling: 'auto-edit' } })
    expect(operation(await wait(operation(receipt).operation_id)).status).toBe('cancelled')
    expect(await answer(id, 'approve')).toMatchObject({ changed: false, status: 'cancelled' })
    expect(content()).toBe('one\ntwo\n')
  })

  it('AP-09 pause cancels what waits; a repeated key is refused while paused', async () => {
    const receipt = await edit({}, 'paused')
    const { id } = await asked()
    const { cancelled } = await host.api<{ cancelled: number }>('POST', `/api/connections/${connection}/pause`)
    expect(cancelled).toBe(1)
    expect((await answer(id, 'approve')).changed).toBe(false)
    expect(errorCode(await edit({}, 'paused'))).toBe('connection_paused')
    await host.api('POST', `/api/connections/${connection}/resume`)
    expect(operation(await wait(operation(receipt).operation_id)).status).toBe('cancelled')
    expect(content()).toBe('one\ntwo\n')
  })

  it('GU-63 no more than 50 side effects wait or run at once for a connection', async () => {
    const receipts = await Promise.all(Array.from({ length: 50 }, () => edit()))
    expect(new Set(receipts.map((one) => operation(one).status))).toEqual(new Set(['waiting_approval']))
    expect(errorCode(await edit())).toBe('rate_limited')
    expect((await client.call('Read', { path: 'a.txt' })).isError).toBeFalsy()
    const { cancelled } = await host.api<{ cancelled: number }>('POST', `/api/connections/${connection}/revoke`)
    expect(cancelled).toBe(50)
    expect(await waiting()).toEqual([])
  })
})

import { once } from 'node:events'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { childrenOf, holdSearches } from './held.js'

let host: TestHost
let connection: string
let ref: string
let client: TestClient

beforeEach(async () => {
  host = await startHost()
  connection = await host.connection()
  ref = await host.session(connection)
  // The test alone starts hosts.
  client = await connectClient(host, connection, 'v2 auto', { session: ref, args: ['--no-start'] })
})
afterEach(async () => {
  await client.close()
  await host.stop()
})

const id = (result: CallResult) => meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
const status = (result: CallResult) => meta<{ status: string }>(result, 'kiki/operation').status
const row = (operation: string) => host.api('GET', `/api/operations/${operation}`)
const until = async (done: () => boolean | Promise<boolean>) => {
  while (!(await done())) await new Promise((resolve) => setImmediate(resolve))
}
const operations = async () =>
  (
    await host.api<{ operations: { id: string; tool: string; status: string }[] }>(
      'GET',
      `/api/operations?session=${ref}`,
    )
  ).operations

/** Kills the host in the moment when it has begun to keep the earlier content of a file that it is about to change. */
async function killInTheMiddle(): Promise<void> {
  const changes = join(host.home, 'changes')
  mkdirSync(changes, { recursive: true, mode: 0o700 })
  const watcher = watch(changes)
  await once(watcher, 'change')
  await host.kill()
  watcher.close()
}

/** A large file, so that changing it takes a while, and the call that changes its first letter. */
function largeFile(): { path: string; before: string; call: { name: string; args: Record<string, unknown> } } {
  const path = join(host.workspace, 'large.txt')
  const before = `a${'.'.repeat(48 * 1024 * 1024)}\n`
  writeFileSync(path, before)
  const args = {
    path: 'large.txt',
    old_string: 'a',
    new_string: 'b',
    _kiki: { idempotency_key: 'k', session_ref: ref },
  }
  return { path, before, call: { name: 'Edit', args } }
}

describe('kill -9 of the host', () => {
  it('GU-01 GU-05 OP-16 in the middle of a side effect: outcome_unknown, old or new content, and it never runs again', async () => {
    const { path, before, call } = largeFile()
    const lost = client.call(call.name, call.args).catch((error: Error) => error)
    await killInTheMiddle()
    expect(await lost).toBeInstanceOf(Error)
    await host.restart()

    const [operation] = await operations()
    expect(operation).toMatchObject({ tool: 'Edit', status: 'outcome_unknown', effects_possible: true })
    const content = readFileSync(path, 'utf8')
    expect([before, `b${before.slice(1)}`].some((whole) => whole === content)).toBe(true)
    expect(readdirSync(host.workspace)).toEqual(['large.txt'])

    // Back to the old content: a second run would show.
    writeFileSync(path, before)
    const replay = await client.call(call.name, call.args)
    expect(replay.isError).toBe(true)
    expect(meta(replay, 'kiki/operation')).toMatchObject({
      operation_id: operation?.id,
      status: 'outcome_unknown',
      effects_possible: true,
      replayed: true,
    })
    expect(meta(replay, 'kiki/error')).toMatchObject({ code: 'outcome_unknown' })
    expect(textOf(replay)).toMatch(
      /^Replayed: nothing ran now[\s\S]*Edit was running \(started \d{4}-[\s\S]*Inspect the target/,
    )
    await host.kill()
    await host.restart()
    expect(status(await client.call(call.name, call.args))).toBe('outcome_unknown')
    expect(readFileSync(path, 'utf8') === before).toBe(true)
  })

  it('GU-05 FI-06 in the middle of a write in place: the earlier content is put back', async () => {
    const { path, before, call } = largeFile()
    linkSync(path, join(host.workspace, 'other-name.txt'))
    const lost = client.call(call.name, call.args).catch(() => undefined)
    await killInTheMiddle()
    await lost
    await host.restart()
    const content = readFileSync(path, 'utf8')
    expect([before, `b${before.slice(1)}`].some((whole) => whole === content)).toBe(true)
    expect(readFileSync(join(host.workspace, 'other-name.txt'), 'utf8') === content).toBe(true)
  })

  it('GU-03 at once after the answer: nothing acknowledged is lost', async () => {
    for (let i = 0; i < 5; i++) {
      const args = { path: `f${i}`, content: `${i}`, _kiki: { idempotency_key: `k${i}`, session_ref: ref } }
      const answer = await client.call('Write', args)
      await host.kill()
      await host.restart()
      const replay = await client.call('Write', args)
      expect(meta(replay, 'kiki/operation')).toMatchObject({
        operation_id: id(answer),
        status: 'completed',
        replayed: true,
      })
      expect(replay.content.slice(1)).toEqual(answer.content)
    }
  })

  it('GU-01 GU-05 with calls that wait for their turn: each is dispatched once by the next host', async () => {
    writeFileSync(join(host.workspace, 'oracle.txt'), '.')
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { concurrency: 1 } })
    await holdSearches(host, connection, ref)
    const [launcher = 0] = childrenOf(host.pid)
    try {
      expect(status(await client.call('Grep', { pattern: 'x', _kiki: { wait_ms: 0, idempotency_key: 'read' } }))).toBe(
        'running',
      )
      const calls = [1, 2, 3].map((n) => ({
        path: 'oracle.txt',
        old_string: '.',
        new_string: `${n}.`,
        _kiki: { wait_ms: 0, idempotency_key: `mark ${n}` },
      }))
      const queued: CallResult[] = []
      for (const call of calls) queued.push(await client.call('Edit', call))
      expect(queued.map(status)).toEqual(['accepted', 'accepted', 'accepted'])
      await host.kill()
      expect(readFileSync(join(host.workspace, 'oracle.txt'), 'utf8')).toBe('.')
      await host.restart()
      for (const answer of queued) {
        const ended = await client.call('kiki_operation', { action: 'wait', operation_id: id(answer) })
        expect(status(ended), textOf(ended)).toBe('completed')
      }
      expect(readFileSync(join(host.workspace, 'oracle.txt'), 'utf8')).toBe('123.')
      await host.kill()
      await host.restart()
      for (const call of calls) expect(textOf(await client.call('Edit', call))).toContain('Replayed')
      expect(readFileSync(join(host.workspace, 'oracle.txt'), 'utf8')).toBe('123.')
      // The read that was cut off has failed and may be made again.
      const read = await client.call('Grep', { pattern: 'x', _kiki: { idempotency_key: 'read' } })
      expect(meta(read, 'kiki/operation')).toMatchObject({ status: 'failed', replayed: true })
      expect(textOf(read)).toContain('It changed nothing')
    } finally {
      process.kill(launcher, 'SIGCONT')
    }
  })

  it('GU-02 a call that waited does not begin once its mode, its session or its connection says no', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { concurrency: 1 } })
    const other = await host.session(connection)
    const release = await holdSearches(host, connection, ref)
    try {
      await client.call('Grep', { pattern: 'x', _kiki: { wait_ms: 0 } })
      const write = (path: string, session_ref: string) =>
        client.call('Write', { path, content: 'x', _kiki: { wait_ms: 0, idempotency_key: path, session_ref } })
      const lowered = await write('lowered.txt', ref)
      const closed = await write('closed.txt', other)
      expect([lowered, closed].map(status)).toEqual(['accepted', 'accepted'])
      await host.api('PATCH', `/api/sessions/${ref}`, { mode: 'read-only' })
      await host.api('POST', `/api/sessions/${other}/close`)
      release()
      const ended = await client.call('kiki_operation', { action: 'wait', operation_id: id(lowered) })
      expect(meta(ended, 'kiki/error')).toMatchObject({ code: 'permission_denied', data: { setting: 'session.mode' } })
      expect(await row(id(closed))).toMatchObject({ status: 'cancelled', effects_possible: false })
      expect(readdirSync(host.workspace)).toEqual([])
    } finally {
      release()
    }
  })

  it('GU-02 GU-05 what the owner forbade before the next host came is not dispatched', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { concurrency: 1 } })
    await holdSearches(host, connection, ref)
    const [launcher = 0] = childrenOf(host.pid)
    try {
      await client.call('Grep', { pattern: 'x', _kiki: { wait_ms: 0 } })
      const queued = await client.call('Write', {
        path: 'no.txt',
        content: 'x',
        _kiki: { wait_ms: 0, idempotency_key: 'k' },
      })
      expect(status(queued)).toBe('accepted')
      await host.kill()
      const rule = '[[permission.rules]]\ndecision = "deny"\npattern = "Write(no.txt)"\n'
      writeFileSync(join(host.home, 'config.toml'), rule)
      await host.restart()
      await until(async () => (await row(id(queued))).status !== 'accepted')
      expect(await row(id(queued))).toMatchObject({ status: 'failed', error_code: 'permission_denied' })
      expect(existsSync(join(host.workspace, 'no.txt'))).toBe(false)
    } finally {
      process.kill(launcher, 'SIGCONT')
      rmSync(join(host.home, 'config.toml'), { force: true })
    }
  })

  it('GU-08 may lose the record of a read, never one that was asked about, nor a side effect', async () => {
    const writes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        client.call('Write', { path: `w${i}`, content: 'x', _kiki: { idempotency_key: `w${i}` } }),
      ),
    )
    const asked = await client.call('Read', { path: 'w0' })
    await client.call('kiki_operation', { action: 'get', operation_id: id(asked) })
    await Promise.all(Array.from({ length: 20 }, () => client.call('Read', { path: 'w1' })))
    await host.kill()
    await host.restart()
    const kept = await operations()
    const ids = new Set(kept.map((operation) => operation.id))
    expect([...writes, asked].every((answer) => ids.has(id(answer)))).toBe(true)
    expect(kept.every((operation) => operation.status === 'completed')).toBe(true)
    rmSync(join(host.workspace, 'w0'))
  })
})

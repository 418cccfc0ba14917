import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { childrenOf, holdSearches } from './held.js'

let host: TestHost
let connection: string
let ref: string
let client: TestClient

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  rmSync(host.workspace, { recursive: true, force: true })
  mkdirSync(host.workspace)
  connection = await host.connection()
  ref = await host.session(connection)
  client = await connectClient(host, connection, 'v2 auto', { session: ref })
  return () => client.close()
})

interface Receipt {
  operation_id: string
  status: string
  next: { tool: string; arguments: Record<string, unknown> }
}
const id = (result: CallResult) => meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
const status = (result: CallResult) => meta<{ status: string }>(result, 'kiki/operation').status
const code = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const grep = (wait_ms?: number, key?: string) =>
  client.call('Grep', {
    pattern: 'needle',
    _kiki: { ...(wait_ms === undefined ? {} : { wait_ms }), ...(key === undefined ? {} : { idempotency_key: key }) },
  })
const ask = (args: Record<string, unknown>) => client.call('kiki_operation', args)
const write = (path: string, wait_ms?: number) =>
  client.call('Write', {
    path,
    content: 'x',
    _kiki: { idempotency_key: `write ${path}`, ...(wait_ms === undefined ? {} : { wait_ms }) },
  })

describe('waiting', () => {
  it('OP-08 OP-10 a call that outlives the wait is answered by a receipt and stays this operation', async () => {
    writeFileSync(join(host.workspace, 'a.txt'), 'a needle')
    const release = await holdSearches(host, connection, ref)
    try {
      const answer = await grep(0)
      const receipt = answer.structuredContent as unknown as Receipt
      expect(answer.isError).toBeFalsy()
      expect(receipt).toEqual({
        operation_id: id(answer),
        status: 'running',
        tool: 'Grep',
        session_ref: ref,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        message: 'Grep is still running.',
        output_so_far: '',
        next: { tool: 'kiki_operation', arguments: { action: 'wait', operation_id: id(answer) } },
      })
      expect(textOf(answer)).toContain(JSON.stringify(receipt.next.arguments))
      expect(await ask({ action: 'get', operation_id: id(answer) })).toMatchObject({
        structuredContent: { status: 'running', tool: 'Grep', session_ref: ref, ended_at: null },
      })
      expect(status(await ask({ action: 'wait', operation_id: id(answer), wait_ms: 50 }))).toBe('running')
      expect(code(await ask({ action: 'read', operation_id: id(answer) }))).toBe('result_missing')
      const waited = ask(receipt.next.arguments)
      release()
      const ended = await waited
      expect(id(ended)).toBe(id(answer))
      expect(status(ended)).toBe('completed')
      expect(textOf(ended)).toContain('a needle')
    } finally {
      release()
    }
  })

  it('OP-08 the wait that a call asks for is capped by the connection', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { wait_ms: 10, max_wait_ms: 200 } })
    const release = await holdSearches(host, connection, ref)
    try {
      const before = performance.now()
      expect(status(await grep(40_000))).toBe('running')
      expect(performance.now() - before).toBeLessThan(5_000)
      expect(status(await grep())).toBe('running')
    } finally {
      release()
    }
  })

  it('OP-02 a repeated key joins the running operation and waits with it', async () => {
    writeFileSync(join(host.workspace, 'a.txt'), 'a needle')
    const release = await holdSearches(host, connection, ref)
    try {
      const first = await grep(0, 'k')
      const joined = grep(40_000, 'k')
      // Answered after the call before it has arrived: lines of one bridge are taken in order.
      await ask({ action: 'get', operation_id: id(first) })
      release()
      const answer = await joined
      expect(id(answer)).toBe(id(first))
      expect(meta(answer, 'kiki/operation')).not.toHaveProperty('replayed')
      expect(textOf(answer)).toContain('a needle')
    } finally {
      release()
    }
  })

  it('OP-10 lists show this session’s operations, newest first and paged', async () => {
    for (const name of ['a', 'b', 'c']) await write(name)
    const first = await ask({ action: 'list', limit: 2 })
    const page = first.structuredContent as { operations: { tool: string; operation_id: string }[]; cursor: string }
    expect(page.operations).toHaveLength(2)
    const second = (await ask({ action: 'list', limit: 2, cursor: page.cursor })).structuredContent as typeof page
    expect(second.operations).toHaveLength(1)
    expect(second.cursor).toBeUndefined()
    expect(new Set([...page.operations, ...second.operations].map((row) => row.operation_id)).size).toBe(3)
    expect(page.operations[0]).toMatchObject({ tool: 'Write', status: 'completed', session_ref: ref })
    const other = await host.session(connection)
    expect((await ask({ action: 'list', session_ref: other })).structuredContent).toEqual({ operations: [] })
  })

  it('OP-10 get shows times, facts and a short preview', async () => {
    const written = await write('a.txt')
    const got = await ask({ action: 'get', operation_id: id(written) })
    expect(got.structuredContent).toMatchObject({
      operation_id: id(written),
      status: 'completed',
      created_at: expect.any(String),
      started_at: expect.any(String),
      ended_at: expect.any(String),
      preview: expect.stringMatching(/Created a\.txt[\s\S]*"sha256"/),
    })
    expect(textOf(got)).not.toContain('only the first')
  })

  it('OP-10 a preview that is cut says so, and how to read the whole', async () => {
    const content = Array.from({ length: 100 }, (_, line) => `line ${line} of many\n`).join('')
    const written = await client.call('Write', { path: 'long.txt', content, _kiki: { idempotency_key: 'long' } })
    expect(status(written)).toBe('completed')
    const edit = { path: 'long.txt', old_string: 'of many', new_string: 'of all', replace_all: true }
    const edited = await client.call('Edit', { ...edit, _kiki: { idempotency_key: 'edit' } })
    const whole = textOf(edited)
    expect(whole.length).toBeGreaterThan(500)
    const got = await ask({ action: 'get', operation_id: id(edited) })
    const { preview } = got.structuredContent as { preview: string }
    const call = { action: 'read', operation_id: id(edited), part: 0 }
    expect(preview).toContain(
      `${whole.slice(0, 500)}\n[… only the first 500 of ${whole.length} characters. The whole: kiki_operation ${JSON.stringify(call)}]`,
    )
    expect(textOf(got)).toContain(preview)
    expect((await ask(call)).structuredContent).toEqual({ text: whole, offset: 0 })
  })
})

describe('cancelling', () => {
  it('OP-11 before it began: nothing ran, it is cancelled for good, and saying so again changes nothing', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { concurrency: 1 } })
    const release = await holdSearches(host, connection, ref)
    try {
      await grep(0)
      const queued = await write('never.txt', 0)
      expect(status(queued)).toBe('accepted')
      const cancelled = await ask({ action: 'cancel', operation_id: id(queued) })
      expect(cancelled.structuredContent).toMatchObject({ status: 'cancelled' })
      expect(cancelled.structuredContent).not.toHaveProperty('effects_possible')
      const again = await ask({ action: 'cancel', operation_id: id(queued) })
      expect(again.structuredContent).toEqual({
        ...cancelled.structuredContent,
        message: `Write (${id(queued)}) was over already: cancelled. Nothing changed.`,
      })
      release()
      const replay = await write('never.txt')
      expect(status(replay)).toBe('cancelled')
      expect(textOf(replay)).toMatch(/^Replayed: nothing ran now\..*never ran/)
      expect(() => readFileSync(join(host.workspace, 'never.txt'))).toThrow('ENOENT')
    } finally {
      release()
    }
  })

  it('OP-11 a finished operation stays what it was', async () => {
    const written = await write('a.txt')
    const cancel = await ask({ action: 'cancel', operation_id: id(written) })
    expect(cancel.structuredContent).toMatchObject({ status: 'completed' })
    expect(textOf(cancel)).toContain('Nothing changed')
  })

  it('OP-11 running work is stopped with its children and is cancelled', async () => {
    // Many seconds of real work for ripgrep: Unicode word boundaries over text that is not ASCII.
    const words = Array.from({ length: 400_000 }, (_, i) => `é${(i * 7919) % 100_003}`).join(' ')
    writeFileSync(join(host.workspace, 'words.txt'), words)
    const running = await client.call('Grep', {
      pattern: '\\b(\\w+\\s+){60}\\b[a-v]{3}(\\w+\\s+){60}\\b',
      multiline: true,
      _kiki: { wait_ms: 200 },
    })
    expect(status(running), textOf(running)).toBe('running')
    const [launcher = 0] = childrenOf(host.pid)
    expect(childrenOf(launcher)).toHaveLength(1)
    const before = performance.now()
    const cancelled = await ask({ action: 'cancel', operation_id: id(running) })
    expect(performance.now() - before).toBeLessThan(5_000)
    expect(cancelled.structuredContent).toMatchObject({ status: 'cancelled' })
    expect(childrenOf(launcher)).toEqual([])
  })
})

describe('results', () => {
  it('OP-13 OP-14 OP-15 a cut result is paged from what was saved, though the file has changed and gone', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { inline_text_limit: 1000 } })
    const lines = Array.from({ length: 500 }, (_, i) => `line ${i} 😀`)
    writeFileSync(join(host.workspace, 'a.txt'), lines.join('\n'))
    const whole = lines.map((line, i) => `${i + 1}\t${line}`).join('\n')
    const read = await client.call('Read', { path: 'a.txt', limit: 1000 })
    expect(textOf(read)).toContain(`of ${whole.length} characters are left out`)
    writeFileSync(join(host.workspace, 'a.txt'), 'something else')
    let text = ''
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const page = await ask({ action: 'read', operation_id: id(read), offset, limit: 777 })
      const { next, ...shown } = page.structuredContent as {
        text: string
        offset: number
        next?: { arguments: { offset: number } }
      }
      expect(shown).toEqual({ text: page.content[0]?.text, offset })
      expect(shown.text).not.toMatch(/\p{Surrogate}/u)
      expect(shown.text.length).toBeLessThanOrEqual(777)
      text += shown.text
      offset = next?.arguments.offset
      rmSync(join(host.workspace, 'a.txt'), { force: true })
    }
    expect(text).toBe(whole)
    expect(code(await ask({ action: 'read', operation_id: id(read), offset: whole.length + 1 }))).toBe(
      'invalid_arguments',
    )
    expect(code(await ask({ action: 'read', operation_id: id(read), limit: 256_001 }))).toBe('invalid_arguments')
    expect(code(await ask({ action: 'read', operation_id: id(read), part: 1 }))).toBe('result_missing')
    const end = await ask({ action: 'read', operation_id: id(read), offset: whole.length })
    expect(end.structuredContent).toEqual({ text: '', offset: whole.length })
  })

  it('OP-17 the record says who, what, by which policy, when and how it ended', async () => {
    const written = await client.call('Write', {
      path: 'a.txt',
      content: 'x',
      _kiki: { idempotency_key: 'k' },
    })
    await client.call('Read', { path: 'none.txt' })
    const row = await host.api('GET', `/api/operations/${id(written)}`)
    expect(row).toMatchObject({
      id: id(written),
      connection,
      session_ref: ref,
      client: { name: 'new-client', version: '2.0.0' },
      tool: 'Write',
      effect: 'write',
      status: 'completed',
      error_code: null,
      effects_possible: false,
      policy_version: 1,
      decision: { kind: 'allow', by: 'connection.ceiling' },
      parent: null,
      approval: null,
      argument_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      accepted_at: expect.any(String),
      started_at: expect.any(String),
      ended_at: expect.any(String),
      result_chars: textOf(written).length,
      arguments: { path: 'a.txt', content: 'x' },
      changes: [{ kind: 'create', path: join(host.workspace, 'a.txt') }],
    })
    const { operations } = await host.api<{ operations: { tool: string; error_code: string; status: string }[] }>(
      'GET',
      `/api/operations?session=${ref}`,
    )
    expect(operations[0]).toMatchObject({ tool: 'Read', effect: 'read', status: 'failed', error_code: 'not_found' })
  })
})

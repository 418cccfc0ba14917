import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, ERAS, meta, type TestClient, textOf } from '../helpers/clients.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

const CONTROL = ['kiki_session', 'kiki_operation', 'kiki_save_text']

let host: TestHost
let connection: string
let ref: string
let client: TestClient

beforeAll(async () => {
  host = await startHost({ config: '[profiles.look]\nmode = "read-only"\ninstructions = "Only look."\n' })
})
afterAll(() => host.stop())
beforeEach(async () => {
  rmSync(host.workspace, { recursive: true, force: true })
  mkdirSync(host.workspace)
  connection = await host.connection()
  ref = await host.session(connection)
  client = await connectClient(host, connection, 'v1', { args: ['--no-start'] })
  return () => client.close()
})

const code = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const session = (args: Record<string, unknown>) => client.call('kiki_session', args)
const sessions = async () =>
  (await host.api<{ sessions: { session_ref: string }[] }>('GET', `/api/sessions?connection=${connection}`)).sessions

describe('what a client sees', () => {
  it.each(ERAS)('SE-01 SE-02 connecting and listing as %s makes no session and shows three tools', async (era) => {
    const fresh = await host.connection({}, 'fresh')
    const other = await connectClient(host, fresh, era)
    expect(await other.tools()).toEqual(CONTROL)
    expect(await other.tools()).toEqual(CONTROL)
    await other.close()
    expect(await host.api('GET', `/api/sessions?connection=${fresh}`)).toEqual({ sessions: [] })
  })

  it('SE-03 list shows the open sessions of this connection, newest first and paged', async () => {
    const more: string[] = []
    for (let i = 0; i < 21; i++) more.push(await host.session(connection, { title: `t${i}`, profile: 'look' }))
    await host.session(await host.connection({}, 'other'))
    await host.api('POST', `/api/sessions/${more.shift()}/close`)
    await session({ action: 'resume', session_ref: more.at(-1) })
    const first = (await session({ action: 'list' })).structuredContent as {
      sessions: { session_ref: string }[]
      cursor: string
    }
    expect(first.sessions).toHaveLength(20)
    expect(first.sessions[0]).toEqual({
      session_ref: more.at(-1),
      title: 't20',
      workspace: host.workspace,
      mode: 'read-only',
      profile: 'look',
      last_activity: expect.stringMatching(/^\d{4}-/),
      attached: true,
    })
    const second = (await session({ action: 'list', cursor: first.cursor })).structuredContent as typeof first
    expect(second.cursor).toBeUndefined()
    const shown = [...first.sessions, ...second.sessions].map((one) => one.session_ref)
    expect(shown).toEqual([...more.reverse(), ref])
    expect(code(await session({ action: 'list', cursor: 'x' }))).toBe('invalid_arguments')
  })

  it('SE-03 SE-09 list marks a session whose folder is gone or was replaced by a link', async () => {
    const lines = async () => textOf(await session({ action: 'list' }))
    const facts = async () =>
      ((await session({ action: 'list' })).structuredContent as { sessions: object[] }).sessions[0]
    expect(await facts()).not.toHaveProperty('workspace_available')
    expect(await lines()).not.toContain('gone')
    renameSync(host.workspace, `${host.workspace}-away`)
    try {
      expect(await facts()).toMatchObject({ session_ref: ref, workspace_available: false })
      expect(await lines()).toContain('(its folder is gone)')
      symlinkSync(`${host.workspace}-away`, host.workspace)
      expect(await facts()).toMatchObject({ workspace_available: false })
    } finally {
      rmSync(host.workspace, { force: true })
      renameSync(`${host.workspace}-away`, host.workspace)
    }
    expect(await facts()).not.toHaveProperty('workspace_available')
  })

  it('SE-04 resume names workspace, branch, mode, tools and how to call them', async () => {
    execFileSync('git', ['init', '-q', '-b', 'topic', host.workspace])
    const resumed = await session({
      action: 'resume',
      session_ref: await host.session(connection, { profile: 'look' }),
    })
    expect(resumed.structuredContent).toMatchObject({ workspace: host.workspace, branch: 'topic', mode: 'read-only' })
    for (const part of [
      host.workspace,
      'on branch topic',
      'Mode: read-only',
      'Read, ',
      '"session_ref"',
      'idempotency_key',
      'Only look.',
    ]) {
      expect(textOf(resumed)).toContain(part)
    }
  })

  it('SE-04 foreign, unknown and deleted references get one and the same refusal', async () => {
    const foreign = await host.session(await host.connection({}, 'other'))
    const deleted = await host.session(connection)
    await host.api('DELETE', `/api/sessions/${deleted}`)
    const answers = await Promise.all(
      [foreign, deleted, 'ext_unknown'].map((session_ref) => session({ action: 'resume', session_ref })),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[1]).toEqual(answers[2])
    expect(code(answers[0] as CallResult)).toBe('session_unavailable')
  })

  it('SE-06 new makes a session with the same settings, once a key', async () => {
    const from = await host.session(connection, { title: 'From', profile: 'look', mode: 'auto-edit' })
    const args = { action: 'new', session_ref: from, _kiki: { idempotency_key: 'n' } }
    expect(code(await session({ action: 'new', session_ref: from }))).toBe('idempotency_required')
    expect(code(await session({ action: 'new', _kiki: args._kiki }))).toBe('session_required')
    const answers = await Promise.all([session(args), session(args), session(args)])
    const refs = answers.map((answer) => meta<{ session_ref: string }>(answer, 'kiki/result').session_ref)
    expect(new Set(refs).size).toBe(1)
    const again = await session(args)
    expect(textOf(again)).toMatch(/^Replayed/)
    expect(meta(again, 'kiki/result')).toMatchObject({ session_ref: refs[0] })
    expect(await host.api('GET', `/api/sessions/${refs[0]}`)).toMatchObject({
      connection,
      workspace: host.workspace,
      mode: 'auto-edit',
      profile: 'look',
      title: 'From',
    })
    expect(await sessions()).toHaveLength(3)
  })

  it('SE-07 a client cannot choose directory, workspace, mode, profile or connection', async () => {
    for (const name of ['directory', 'cwd', 'workspace', 'mode', 'profile', 'connection', 'title']) {
      for (const action of ['new', 'resume', 'list']) {
        const answer = await session({
          action,
          session_ref: ref,
          [name]: '/',
          _kiki: { idempotency_key: `${name} ${action}` },
        })
        expect(code(answer)).toBe('invalid_arguments')
        expect(textOf(answer)).toContain(`unknown argument "${name}"`)
      }
    }
    const read = await client.call('Read', { path: 'a', _kiki: { session_ref: ref, workspace: '/' } })
    expect(code(read)).toBe('invalid_arguments')
    expect(await sessions()).toHaveLength(1)
  })

  it('SE-08 close ends a session: unfinished work is cancelled, its tools go, its records stay', async () => {
    await session({ action: 'resume', session_ref: ref })
    await client.call('Write', { path: 'a', content: 'x', _kiki: { session_ref: ref, idempotency_key: 'a' } })
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { concurrency: 1 } })
    const release = await holdSearches(host, connection, ref)
    try {
      await client.call('Grep', { pattern: 'x', _kiki: { session_ref: ref, wait_ms: 0, idempotency_key: 'g' } })
      const queued = await client.call('Write', {
        path: 'b',
        content: 'x',
        _kiki: { session_ref: ref, wait_ms: 0, idempotency_key: 'b' },
      })
      expect(meta(queued, 'kiki/operation')).toMatchObject({ status: 'accepted' })
      const changed = client.listChanged()
      const closed = await session({ action: 'close', session_ref: ref })
      expect(textOf(closed)).toContain('2 unfinished operations were cancelled')
      await changed
    } finally {
      release()
    }
    expect(await client.tools()).toEqual(CONTROL)
    const { operations } = await host.api<{ operations: { status: string; tool: string }[] }>(
      'GET',
      `/api/operations?session=${ref}`,
    )
    expect(operations.map((one) => `${one.tool} ${one.status}`)).toEqual([
      'Write cancelled',
      'Grep cancelled',
      'Grep completed',
      'Write completed',
    ])
    expect(code(await client.call('Read', { path: 'a', _kiki: { session_ref: ref } }))).toBe('session_closed')
    expect(textOf(await session({ action: 'close', session_ref: ref }))).toContain('was closed before')
    expect(readdirSync(host.workspace)).toEqual(['a'])
  })

  it('SE-09 a folder that is gone or replaced by a link is not another folder', async () => {
    const link = join(host.base, 'link')
    rmSync(link, { force: true })
    symlinkSync(host.workspace, link)
    const through = await host.session(connection, { workspace: link })
    expect(await host.api('GET', `/api/sessions/${through}`)).toMatchObject({ workspace: host.workspace })
    const elsewhere = join(host.base, 'elsewhere')
    rmSync(elsewhere, { recursive: true, force: true })
    renameSync(host.workspace, elsewhere)
    writeFileSync(join(elsewhere, 'secret'), 'secret')
    const refused = async () =>
      Promise.all([
        client.call('Read', { path: 'secret', _kiki: { session_ref: ref } }),
        client.call('Write', { path: 'new', content: 'x', _kiki: { session_ref: ref, idempotency_key: 'w' } }),
        session({ action: 'resume', session_ref: ref }),
      ])
    expect((await refused()).map(code)).toEqual(Array(3).fill('session_unavailable'))
    symlinkSync(elsewhere, host.workspace)
    expect((await refused()).map(code)).toEqual(Array(3).fill('session_unavailable'))
    const copy = await session({ action: 'new', session_ref: ref, _kiki: { idempotency_key: 'copy' } })
    expect(code(copy)).toBe('session_unavailable')
    expect(readdirSync(elsewhere)).toEqual(['secret'])
    expect(await sessions()).toHaveLength(2)
    rmSync(host.workspace)
  })
})

describe('the owner', () => {
  it('SE-14 makes, renames, re-modes within the ceiling, closes and deletes; deleting is confirmed and takes the results', async () => {
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { ceiling: 'auto-edit' } })
    expect(await host.api('PATCH', `/api/sessions/${ref}`, { title: 'Renamed', mode: 'manual' })).toMatchObject({
      title: 'Renamed',
      mode: 'manual',
    })
    await expect(host.api('PATCH', `/api/sessions/${ref}`, { mode: 'full' })).rejects.toThrow(
      /permission_denied.*ceiling auto-edit.*--ceiling full/,
    )
    await host.api('PATCH', `/api/sessions/${ref}`, { mode: 'auto-edit' })
    writeFileSync(join(host.workspace, 'a'), 'kept content')
    await client.call('Write', { path: 'a', content: 'x', _kiki: { session_ref: ref, idempotency_key: 'a' } })
    const changes = join(host.home, 'changes')
    const kept = () =>
      readdirSync(changes).filter((name) => readFileSync(join(changes, name), 'utf8').endsWith('kept content'))
    expect(kept()).toHaveLength(1)
    const kiki = (...args: string[]) =>
      execFileSync(process.execPath, [MAIN, ...args, '--home', host.home], { stdio: 'pipe' })
    expect(() => kiki('sessions', 'delete', ref)).toThrow(/--yes/)
    expect(await host.api('GET', `/api/sessions/${ref}`)).toMatchObject({ status: 'open' })
    kiki('sessions', 'close', ref)
    expect(await host.api('GET', `/api/sessions/${ref}`)).toMatchObject({ status: 'closed' })
    kiki('sessions', 'delete', ref, '--yes')
    await expect(host.api('GET', `/api/sessions/${ref}`)).rejects.toThrow(/not_found/)
    expect(await host.api('GET', `/api/operations?session=${ref}`)).toEqual({ operations: [] })
    expect(kept()).toEqual([])
  })
})

describe('attachments', () => {
  it('SE-15 survive a restart of the host, and the same reference reaches the same session', async () => {
    await session({ action: 'resume', session_ref: ref })
    await client.call('Write', { path: 'a', content: 'x', _kiki: { idempotency_key: 'a' } })
    for (const end of [() => host.kill(), async () => void (await endPolitely())]) {
      await end()
      await host.restart()
      // No session_ref: the bridge is still attached.
      const read = await client.call('Read', { path: 'a' })
      expect(meta(read, 'kiki/operation')).toMatchObject({ session_ref: ref })
      expect(await client.tools()).toContain('Read')
    }
  })

  it('SE-15 a client that starts anew has to resume, and reaches the same session with the same reference', async () => {
    await session({ action: 'resume', session_ref: ref })
    await client.call('Write', { path: 'a', content: 'x', _kiki: { idempotency_key: 'a' } })
    await client.close()
    client = await connectClient(host, connection, 'v1', { args: ['--no-start'] })
    expect(await client.tools()).toEqual(CONTROL)
    expect(code(await client.call('Read', { path: 'a' }))).toBe('session_required')
    expect(textOf(await client.call('Read', { path: 'a', _kiki: { session_ref: ref } }))).toContain('1\tx')
    const replay = await client.call('Write', {
      path: 'a',
      content: 'x',
      _kiki: { session_ref: ref, idempotency_key: 'a' },
    })
    expect(textOf(replay)).toMatch(/^Replayed/)
  })

  it.each(['at its end', 'when it is killed'])(
    'SE-02 SE-15 a bridge holds nothing any more %s; another one still does',
    async (how) => {
      const watcher = await connectClient(host, connection, 'v2 2026-07-28', { args: ['--no-start'] })
      const second = await connectClient(host, connection, 'v1', { args: ['--no-start'] })
      try {
        await session({ action: 'resume', session_ref: ref })
        expect(await watcher.tools()).toContain('Read')
        await second.call('kiki_session', { action: 'resume', session_ref: ref })
        const first = watcher.listChanged()
        if (how === 'at its end') await client.close()
        else process.kill(client.pid, 'SIGKILL')
        await first
        expect(await watcher.tools()).toContain('Read')
        expect(await second.tools()).toContain('Read')
        const last = watcher.listChanged()
        await second.close()
        await last
        expect(await watcher.tools()).toEqual(CONTROL)
      } finally {
        await watcher.close()
      }
    },
  )
})

describe('saved text', () => {
  it('TX-01 OP-01 saves what the client supplies, once a key, as external and unverified', async () => {
    const written = await client.call('Write', {
      path: 'a',
      content: 'x',
      _kiki: { session_ref: ref, idempotency_key: 'a' },
    })
    const { operation_id } = meta<{ operation_id: string }>(written, 'kiki/operation')
    const note = {
      text: ' a text\nof two lines é😀 ',
      title: 'Title',
      kind: 'handoff',
      related_operations: [operation_id],
      session_ref: ref,
      _kiki: { idempotency_key: 'note' },
    }
    const saved = await client.call('kiki_save_text', note)
    expect(saved.isError, textOf(saved)).toBeFalsy()
    expect(textOf(await client.call('kiki_save_text', note))).toMatch(/^Replayed/)
    expect(code(await client.call('kiki_save_text', { ...note, title: 'Other' }))).toBe('idempotency_conflict')
    const shown = await host.api<{ saved_texts: unknown[] }>('GET', `/api/sessions/${ref}`)
    expect(shown.saved_texts).toEqual([
      {
        id: meta<{ saved_text_id: string }>(saved, 'kiki/result').saved_text_id,
        kind: 'handoff',
        title: 'Title',
        text: note.text,
        related_operations: [operation_id],
        source: 'external, unverified',
        created_at: expect.any(String),
      },
    ])
  })

  it('TX-01 refuses what is over its limits, of another kind, half a character, or related to another session', async () => {
    const elsewhere = await client.call('Write', {
      path: 'b',
      content: 'x',
      _kiki: { session_ref: await host.session(connection), idempotency_key: 'b' },
    })
    const { operation_id } = meta<{ operation_id: string }>(elsewhere, 'kiki/operation')
    const base = { text: 'x', title: 't', kind: 'note', session_ref: ref, _kiki: { idempotency_key: 'k' } }
    const wrong: [Record<string, unknown>, string][] = [
      [{ text: '' }, 'invalid_arguments'],
      [{ text: 'x'.repeat(1_000_001) }, 'invalid_arguments'],
      [{ text: 'half \ud83d' }, 'invalid_arguments'],
      [{ title: 'x'.repeat(201) }, 'invalid_arguments'],
      [{ kind: 'chat' }, 'invalid_arguments'],
      [{ source: 'verified' }, 'invalid_arguments'],
      [{ related_operations: Array(101).fill('op_1') }, 'invalid_arguments'],
      [{ related_operations: [operation_id] }, 'operation_unavailable'],
      [{ _kiki: {} }, 'idempotency_required'],
    ]
    for (const [change, expected] of wrong)
      expect(code(await client.call('kiki_save_text', { ...base, ...change }))).toBe(expected)
    const { saved_texts } = await host.api<{ saved_texts: unknown[] }>('GET', `/api/sessions/${ref}`)
    expect(saved_texts).toEqual([])
    const largest = await client.call('kiki_save_text', {
      ...base,
      text: 'x'.repeat(1_000_000),
      title: 'x'.repeat(200),
    })
    expect(largest.isError, textOf(largest)).toBeFalsy()
  })
})

async function endPolitely(): Promise<void> {
  const gone = once(host.process, 'exit')
  host.process.kill('SIGTERM')
  await gone
}

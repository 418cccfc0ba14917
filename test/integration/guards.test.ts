import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, type TestClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Watcher, watch } from '../helpers/watcher.js'
import { operationOf, textOf } from './command-bench.js'

let host: TestHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

const clients: TestClient[] = []
afterAll(async () => {
  for (const client of clients) await client.close()
})

async function client(grant: Record<string, unknown>) {
  const connection = await host.connection({ tools: ['files', 'search'], ...grant })
  const made = await connectClient(host, connection, 'v2 2026-07-28', { session: await host.session(connection) })
  clients.push(made)
  return (name: string, args: Record<string, unknown>, kiki: Record<string, unknown> = {}): Promise<CallResult> =>
    made.call(name, { ...args, _kiki: { idempotency_key: randomUUID(), ...kiki } })
}

/** Resolves once the host has seen that nobody takes questions any more. */
async function unwatched(watcher: Watcher): Promise<void> {
  await watcher.close()
  while ((await host.api<{ consumers: number }>('GET', '/api/approvals')).consumers > 0);
}

beforeEach(() => {
  writeFileSync(join(host.workspace, '.env'), 'TOKEN=canary-4711\n')
  writeFileSync(join(host.workspace, 'plain.txt'), 'canary-4711 in the open\n')
})

describe('PA-05', () => {
  it('PA-05 FC-P01 PO-03 writing what is run elsewhere asks in full too, and without anybody to ask nothing happens', async () => {
    const call = await client({ ceiling: 'full' })
    mkdirSync(join(host.workspace, 'repo/.git/hooks'), { recursive: true })
    const tries: [string, Record<string, unknown>][] = [
      ['Write', { path: '.kiki/mcp.json', content: '{}' }],
      ['Write', { path: '.KIKI/settings.local.json', content: '{}' }],
      ['Write', { path: 'repo/.git/hooks/post-commit', content: 'evil' }],
      ['Write', { path: '.git/config', content: 'evil' }],
      ['Write', { path: '.envrc', content: 'evil' }],
      ['Write', { path: '.vscode/tasks.json', content: '{}' }],
      ['MakeDirectory', { path: '.kiki' }],
      ['Move', { from: 'plain.txt', to: 'repo/.git/hooks/pre-push' }],
      ['Move', { from: 'repo', to: 'moved' }],
      ['Delete', { path: 'repo', recursive: true }],
    ]
    for (const [name, args] of tries) {
      const refused = await call(name, args)
      expect(textOf(refused), `${name} ${JSON.stringify(args)}`).toMatch(
        /^approval_unavailable: .*is always asked about/,
      )
    }
    expect(existsSync(join(host.workspace, '.kiki'))).toBe(false)
    expect(existsSync(join(host.workspace, 'repo/.git/hooks'))).toBe(true)
    expect((await call('Write', { path: 'repo/README', content: 'x' })).isError).toBeUndefined()
  })

  it('PA-05 a link that leads to a guarded place asks as well', async () => {
    const call = await client({ ceiling: 'full' })
    mkdirSync(join(host.workspace, 'linked/.git/hooks'), { recursive: true })
    symlinkSync('.git/hooks', join(host.workspace, 'linked/h'))
    expect(textOf(await call('Write', { path: 'linked/h/post-commit', content: 'evil' }))).toMatch(
      /^approval_unavailable/,
    )
  })
})

describe('what only the record names', () => {
  it('PA-05 FI-14 PO-06 an undo of a guarded file asks again, uses up no key, and explain says so', async () => {
    const call = await client({ ceiling: 'full' })
    await call('Write', { path: 'free.txt', content: 'x' })
    const watcher: Watcher = await watch(host.socket)
    let operationId: string
    try {
      const written = operationOf(await call('Write', { path: '.envrc', content: 'export A=1' }, { wait_ms: 0 }))
      operationId = written.operation_id
      const { approvalId } = await watcher.next((_, data) => data.operationId === operationId && data.state === 'asked')
      await host.api('POST', `/api/approvals/${approvalId}/approve`, { scope: 'once' })
      await call('kiki_operation', { action: 'wait', operation_id: operationId })
      expect(readFileSync(join(host.workspace, '.envrc'), 'utf8')).toBe('export A=1')
    } finally {
      await unwatched(watcher)
    }
    const key = { idempotency_key: 'undo-of-a-guarded-file' }
    for (const args of [{}, { operation_id: operationId }, { since: operationId }]) {
      expect(textOf(await call('Undo', args, key)), JSON.stringify(args)).toMatch(
        /^approval_unavailable: .*\.envrc.*is always asked about/,
      )
    }
    expect(existsSync(join(host.workspace, '.envrc'))).toBe(true)
    await call('Write', { path: 'free.txt', content: 'y' })
    const session = await host.session(await host.connection({ tools: ['files'], ceiling: 'full' }))
    const explained = await host.api<{ decision: string; by: string; reason: string }>('POST', '/api/policy/explain', {
      ...{ session, tool: 'Write', argument: '.git/config' },
    })
    expect(explained).toMatchObject({ decision: 'ask', by: 'guard', reason: expect.stringContaining('.git/config') })
    const freed = await call('Undo', {}, key)
    expect(freed.isError, textOf(freed)).toBeUndefined()
    expect(readFileSync(join(host.workspace, 'free.txt'), 'utf8')).toBe('x')
    expect(existsSync(join(host.workspace, '.envrc'))).toBe(true)
  })

  it("PA-06 FI-14 a secret's changes are listed without what it holds", async () => {
    const call = await client({ ceiling: 'full' })
    const watcher: Watcher = await watch(host.socket)
    let operationId: string
    try {
      const edit = { path: '.env', old_string: 'TOKEN', new_string: 'NAME' }
      operationId = operationOf(await call('Edit', edit, { wait_ms: 0 })).operation_id
      const { approvalId } = await watcher.next((_, data) => data.operationId === operationId && data.state === 'asked')
      await host.api('POST', `/api/approvals/${approvalId}/approve`, { scope: 'once' })
      expect(textOf(await call('kiki_operation', { action: 'wait', operation_id: operationId }))).toContain(
        'canary-4711',
      )
    } finally {
      await unwatched(watcher)
    }
    const shown = textOf(await call('Changes', { operation_id: operationId }))
    expect(shown).toContain('modified .env')
    expect(shown).toContain('looks like a secret')
    expect(shown).not.toContain('canary')
    writeFileSync(join(host.workspace, '.env'), 'NAME=other-canary\n')
    const undone = await call('Undo', { operation_id: operationId })
    expect(textOf(undone)).toMatch(/^approval_unavailable/)
    expect(textOf(undone)).not.toContain('canary')
  })
})

describe('PA-06', () => {
  it('PA-06 a secret is refused in read-only, and asked about otherwise, for this one call', async () => {
    const readOnly = await client({ ceiling: 'read-only' })
    expect(textOf(await readOnly('Read', { path: '.env' }))).toMatch(/^permission_denied: .*looks like a secret/)
    expect(textOf(await readOnly('Grep', { pattern: 'canary', path: '.env' }))).toMatch(/^permission_denied/)
    const call = await client({ ceiling: 'full' })
    expect(textOf(await call('Read', { path: '.env' }))).toMatch(/^approval_unavailable/)
    const watcher: Watcher = await watch(host.socket)
    try {
      for (const scope of ['session', 'once']) {
        const started = await call('Read', { path: '.env' }, { wait_ms: 0 })
        const { operation_id, status } = operationOf(started)
        expect(status, scope).toBe('waiting_approval')
        const { approvalId } = await watcher.next(
          (event, data) => event === 'approval.changed' && data.operationId === operation_id && data.state === 'asked',
        )
        const asked = await host.api<{ why: { reason: string } }>('GET', `/api/approvals/${approvalId}`)
        expect(asked.why.reason).toContain('looks like a secret')
        await host.api('POST', `/api/approvals/${approvalId}/approve`, { scope })
        expect(textOf(await call('kiki_operation', { action: 'wait', operation_id }))).toContain('canary-4711')
      }
    } finally {
      await unwatched(watcher)
    }
  })

  it('PA-06 a search shows nothing of secrets, a link to one is not followed, and a move does not carry it away', async () => {
    const call = await client({ ceiling: 'full' })
    for (const mode of ['content', 'files', 'count']) {
      const found = textOf(await call('Grep', { pattern: 'canary', hidden: true, ignored: true, output_mode: mode }))
      expect(found).toContain('plain.txt')
      expect(found).not.toContain('.env')
    }
    expect(textOf(await call('Grep', { pattern: 'TOKEN=', hidden: true }))).toMatch(/files that look like secrets/)
    symlinkSync('.env', join(host.workspace, 'harmless.txt'))
    for (const name of ['Read', 'Grep']) {
      const args = name === 'Read' ? { path: 'harmless.txt' } : { pattern: 'TOKEN', path: 'harmless.txt' }
      const result = await call(name, args)
      expect(textOf(result)).not.toContain('canary-4711')
      expect(result.isError, name).toBe(true)
    }
    expect(textOf(await call('Move', { from: '.env', to: 'open.txt' }))).toMatch(/^approval_unavailable/)
    expect(textOf(await call('Edit', { path: '.env', old_string: 'TOKEN', new_string: 'X' }))).toMatch(
      /^approval_unavailable/,
    )
    expect(readFileSync(join(host.workspace, '.env'), 'utf8')).toBe('TOKEN=canary-4711\n')
    expect(textOf(await call('Glob', { pattern: '**/.env', hidden: true }))).toContain('.env')
  })
})

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/lib/ids.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { signIn } from '../helpers/owner-server.js'

interface Entry {
  seq: number
  actor: string
  action: string
  connection: string | null
  session: string | null
  status: string | null
  error_code: string | null
  detail: Record<string, unknown> | null
}

let host: TestHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

const list = (query = '') => host.api<{ entries: Entry[]; next_before?: number }>('GET', `/api/audit${query}`)
/** What was noted while `work` ran, oldest first. */
async function notedBy(work: () => Promise<unknown>): Promise<Entry[]> {
  const before = (await list('?limit=1')).entries[0]?.seq ?? 0
  await work()
  const { entries } = await list('?limit=200')
  return entries.filter(({ seq }) => seq > before).toReversed()
}
const words = (entries: Entry[]) => entries.map(({ action, status }) => `${action} ${status}`)

describe('what the owner does', () => {
  it('GU-68 FC-W01 to connections and sessions is noted with ids only, by whom and by which way', async () => {
    const secrets: string[] = []
    let connection = ''
    let session = ''
    const entries = await notedBy(async () => {
      const made = await host.api<{ id: string; token: string }>('POST', '/api/connections', {
        name: 'CANARY-NAME',
        kind: 'token',
        grant: { ceiling: 'full' },
      })
      connection = made.id
      secrets.push(made.token)
      session = await host.session(connection, { title: 'CANARY-TITLE' })
      await host.api('PATCH', `/api/sessions/${session}`, { title: 'CANARY-OTHER' })
      await host.api('PATCH', `/api/connections/${connection}`, { grant: { tools: ['files'] } })
      await host.api('POST', `/api/connections/${connection}/pause`)
      await host.api('POST', `/api/connections/${connection}/pause`)
      await host.api('POST', `/api/connections/${connection}/resume`)
      await host.api('POST', `/api/sessions/${session}/close`)
      await host.api('POST', `/api/connections/${connection}/revoke`)
      await host.api('DELETE', `/api/sessions/${session}`)
      await host.api('DELETE', `/api/connections/${connection}`)
    })
    expect(words(entries)).toEqual([
      'connection.created done',
      'session.created done',
      'session.changed done',
      'connection.changed done',
      'connection.paused done',
      'connection.paused done',
      'connection.resumed done',
      'session.closed done',
      'connection.revoked done',
      'session.deleted done',
      'connection.deleted done',
    ])
    for (const entry of entries) {
      const ofSession = entry.action.startsWith('session.')
      expect(entry).toMatchObject({ actor: 'owner', detail: { via: 'socket' } })
      expect(ofSession ? entry.session : entry.connection).toBe(ofSession ? session : connection)
    }
    expect(entries[1]).toMatchObject({ connection, session })
    expect(entries[3]?.detail).toEqual({ via: 'socket', fields: 'grant' })
    expect(entries.slice(4, 6).map(({ detail }) => detail?.changed)).toEqual([true, false])
    const token = secrets[0]?.replace('kiki_', '') ?? ''
    for (const secret of ['CANARY', token, token.slice(0, 8)]) expect(JSON.stringify(entries)).not.toContain(secret)
  })

  it('GU-68 a bridge’s credential is noted as the connection’s, without it', async () => {
    const connection = await host.connection()
    let credential = ''
    const entries = await notedBy(async () => {
      const body = { client: connection, bridge: newId('bridge') }
      credential = (await host.api<{ credential: string }>('POST', '/api/bridge/credential', body)).credential
    })
    expect(entries).toMatchObject([{ actor: connection, action: 'bridge.credential_issued', connection }])
    for (const part of credential.split('.')) expect(JSON.stringify(entries)).not.toContain(part.slice(0, 8))
  })

  it('GU-68 sign-ins and refused ones are noted, and the page’s actions as the page’s', async () => {
    let code = ''
    const entries = await notedBy(async () => {
      code = (await host.api<{ code: string }>('POST', '/api/login/codes')).code
      const page = await signIn(host.ownerUrl, code)
      await expect(signIn(host.ownerUrl, code)).rejects.toThrow('401')
      await fetch(`${host.ownerUrl}/api/logout`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', cookie: page.cookie, 'x-kiki-page': page.page },
        body: '{}',
      })
    })
    expect(entries).toMatchObject([
      { action: 'owner.login_code_made', actor: 'owner', status: 'done' },
      { action: 'owner.signed_in', actor: 'owner', status: 'done' },
      { action: 'owner.sign_in_refused', actor: 'unknown', status: 'refused', error_code: 'permission_denied' },
      { action: 'owner.signed_out', actor: 'owner', detail: { via: 'page' } },
    ])
    expect(JSON.stringify(entries)).not.toContain(code.slice(0, 8))
  })

  it('GU-68 what was refused is noted as refused, and what stood in the place of an id is not', async () => {
    const entries = await notedBy(async () => {
      for (const [method, path, body] of [
        ['POST', '/api/connections/kiki_CANARYCANARYCANARYCANARYCANARYCANARYCANARY/revoke', {}],
        ['PATCH', '/api/sessions/CANARY', { title: '' }],
        ['POST', '/api/connections', { name: 'CANARY', kind: 'CANARY', CANARY: 'CANARY' }],
        ['POST', '/api/CANARY', {}],
      ] as const)
        await expect(host.api(method, path, body)).rejects.toThrow()
    })
    expect(entries).toMatchObject([
      {
        action: 'owner.refused',
        error_code: 'not_found',
        connection: null,
        detail: { route: 'POST /api/connections/:id/revoke', http_status: 404 },
      },
      { action: 'owner.refused', error_code: 'invalid_arguments', detail: { route: 'PATCH /api/sessions/:ref' } },
      { action: 'owner.refused', error_code: 'invalid_arguments', detail: { route: 'POST /api/connections' } },
    ])
    expect(JSON.stringify(entries)).not.toContain('CANARY')
  })

  it('GU-68 who floods the sign-in does not flood the log: only codes that were looked at are noted', async () => {
    const statuses: number[] = []
    const entries = await notedBy(async () => {
      for (let n = 0; n < 30; n++) {
        const body = JSON.stringify(n % 3 === 0 ? { code: 7 } : { code: `wrong ${n}` })
        const headers = { 'content-type': 'application/json' }
        statuses.push((await fetch(`${host.ownerUrl}/api/login`, { method: 'POST', headers, body })).status)
      }
    })
    expect(new Set(statuses)).toEqual(new Set([400, 401, 429]))
    expect(words(entries)).toEqual(
      statuses.filter((status) => status === 401).map(() => 'owner.sign_in_refused refused'),
    )
  })

  it('GU-68 reading changes nothing, and is not noted', async () => {
    const entries = await notedBy(async () => {
      for (const path of ['status', 'connections', 'sessions', 'operations', 'audit', 'audit/verify'])
        await host.api('GET', `/api/${path}`)
    })
    expect(entries).toEqual([])
  })
})

describe('/api/audit', () => {
  it('GU-68 is paged and filtered, and refuses what it does not know', async () => {
    const connection = await host.connection()
    await host.session(connection)
    expect(words((await list(`?connection=${connection}`)).entries)).toEqual([
      'session.created done',
      'connection.created done',
    ])
    const first = await list(`?connection=${connection}&limit=1`)
    expect(words(first.entries)).toEqual(['session.created done'])
    const second = await list(`?connection=${connection}&limit=1&before=${first.next_before}`)
    expect([words(second.entries), second.next_before]).toEqual([['connection.created done'], undefined])
    expect((await list('?since=2100-01-01')).entries).toEqual([])
    expect((await list('?since=2020-01-01T00:00:00%2B02:00&action=host.started')).entries).toHaveLength(1)
    for (const wrong of ['?since=yesterday', '?limit=0', '?who=me', '/verify?head=1:zz'])
      await expect(list(wrong)).rejects.toMatchObject({ code: 'invalid_arguments' })
  })

  it('GU-68 the export is whole, ends with the head, and is the same log that verify reads', async () => {
    const token = readFileSync(join(host.home, 'owner.token'), 'utf8').trim()
    const answer = await fetch(`${host.ownerUrl}/api/audit/export`, { headers: { authorization: `Bearer ${token}` } })
    expect(answer.headers.get('content-type')).toBe('application/jsonl')
    const lines = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const verified = await host.api<{ ok: boolean; entries: number; head: object }>('GET', '/api/audit/verify')
    expect(verified).toMatchObject({ ok: true, head: lines.at(-1).head })
    expect(lines.slice(0, -1).map(({ seq }) => seq)).toEqual(Array.from({ length: verified.entries }, (_, n) => n + 1))
  })

  it('GU-68 a start and a stop of the host are noted, and kill -9 breaks nothing', async () => {
    await host.connection()
    await host.kill()
    await host.restart()
    expect(await host.api('GET', '/api/audit/verify')).toMatchObject({ ok: true, alarms: [] })
    expect((await list('?action=host.started')).entries).toHaveLength(2)
    expect((await list('?action=host.stopped')).entries).toHaveLength(0)
    const gone = once(host.process, 'exit')
    await host.api('POST', '/api/stop')
    await gone
    await host.restart()
    expect(words((await list('?limit=3')).entries)).toEqual([
      'host.started null',
      'host.stopped null',
      'host.stop_asked done',
    ])
    expect(await host.api('GET', '/api/audit/verify')).toMatchObject({ ok: true, alarms: [] })
  })
})

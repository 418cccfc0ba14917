import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'

let host: TestHost
let connection: string
beforeAll(async () => {
  host = await startHost()
  connection = await host.connection()
})
afterAll(() => host.stop())

describe('kiki audit', { timeout: 60_000 }, () => {
  it('CL-17 GU-68 lists entries, newest first, with and without the word list', async () => {
    const session = await host.session(connection)
    const { out } = await runKiki(host.home, ['audit', '--connection', connection])
    expect(out).toMatch(new RegExp(`owner .*session.created .*${session} .*done[^]*connection.created .*${connection}`))
    const { value } = await kikiJson(host.home, ['audit', 'list', '--session', session, '--limit', '1'])
    expect(value.entries).toMatchObject([{ action: 'session.created', session, status: 'done' }])
    expect((await runKiki(host.home, ['audit', '--limit', '1'])).out).toMatch(/Older: add --before \d+/)
    expect((await runKiki(host.home, ['audit', '--tool', 'none'])).out).toBe('No entries.\n')
    expect((await runKiki(host.home, ['audit', 'lists'])).code).toBe(2)
  })

  it('CL-17 GU-68 exports JSON Lines to standard output or into a new file of the owner’s alone', async () => {
    const { out } = await runKiki(host.home, ['audit', 'export'])
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const { head } = lines.at(-1)
    expect(lines).toHaveLength(head.seq + 1)
    const file = join(host.base, 'audit.jsonl')
    expect((await kikiJson(host.home, ['audit', 'export', '--file', file])).value).toEqual({
      file,
      entries: head.seq,
      head,
    })
    expect(readFileSync(file, 'utf8')).toBe(out)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect((await kikiJson(host.home, ['audit', 'export', '--file', file])).value.error.code).toBe('conflict')
    expect((await kikiJson(host.home, ['audit', 'export'])).value.error).toMatchObject({ code: 'invalid_arguments' })
    expect((await runKiki(host.home, ['audit', 'export', '--file', join(host.base, 'no', 'folder')])).code).toBe(1)
  })

  it('CL-17 GU-68 verify tells a whole log from one that was tampered with, also by an exported head', async () => {
    const whole = await kikiJson(host.home, ['audit', 'verify'])
    const head = `${whole.value.head.seq}:${whole.value.head.mac}`
    expect([whole.code, whole.value.ok]).toEqual([0, true])
    await host.session(connection)
    expect((await kikiJson(host.home, ['audit', 'verify', '--head', head])).code).toBe(0)
    const other = await runKiki(host.home, [
      'audit',
      'verify',
      '--head',
      head.replace(/.$/, (c) => (c === '0' ? '1' : '0')),
    ])
    expect([other.code, other.err]).toEqual([1, expect.stringContaining('another than the one that was there before')])
    expect((await runKiki(host.home, ['audit', 'verify', '--head', '1:2'])).code).toBe(2)

    await host.kill()
    const db = new BetterSqlite3(join(host.home, 'kiki.db'))
    db.exec("DROP TRIGGER audit_unchanged; UPDATE audit SET actor = 'host' WHERE seq = 2")
    db.close()
    for (const end of ['-wal', '-shm']) rmSync(join(host.home, `kiki.db${end}`), { force: true })
    await host.restart()
    const broken = await kikiJson(host.home, ['audit', 'verify'])
    expect(broken).toMatchObject({
      code: 1,
      value: { error: { code: 'conflict', data: { entries: 1, problem: { seq: 2, kind: 'altered' } } } },
    })
  })

  it('CL-17 without a host it says how to start one, and leaves no half export', async () => {
    const file = join(host.base, 'none.jsonl')
    await host.kill()
    const { code, err } = await runKiki(host.home, ['audit', 'export', '--file', file])
    expect([code, err]).toEqual([1, expect.stringContaining('kiki start')])
    expect(existsSync(file)).toBe(false)
  })

  it('GU-68 a restore is noted with the log that it replaced, and is no alarm', async () => {
    const backup = join(host.base, 'kiki.backup')
    const fresh = await startHost()
    try {
      await fresh.connection()
      await runKiki(fresh.home, ['backup', backup])
      await fresh.connection()
      const { value: before } = await kikiJson(fresh.home, ['audit', 'verify'])
      expect((await runKiki(fresh.home, ['stop'])).code).toBe(0)
      expect((await runKiki(fresh.home, ['restore', backup])).code).toBe(0)
      await fresh.restart()
      const { value } = await kikiJson(fresh.home, ['audit', 'verify'])
      expect(value).toMatchObject({ ok: true, alarms: [] })
      const { value: found } = await kikiJson(fresh.home, ['audit', '--limit', '3'])
      expect(found.entries.map(({ action }: { action: string }) => action)).toEqual([
        'host.started',
        'restore',
        'connection.created',
      ])
      const { replaced_seq } = found.entries[1].detail
      expect(replaced_seq).toBeGreaterThan(before.head.seq)
    } finally {
      await fresh.stop()
    }
  })
})

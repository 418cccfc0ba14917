import { createHmac } from 'node:crypto'
import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GENESIS } from '../../src/audit/chain.js'
import { openAuditFiles } from '../../src/audit/head-file.js'
import { canonicalJson } from '../../src/lib/json.js'
import { chained } from './chained.js'

let place: ReturnType<typeof chained>
let log: ReturnType<ReturnType<typeof chained>['open']>
beforeEach(() => {
  place = chained()
  log = place.open()
})
afterEach(() => {
  log.close()
  place.remove()
})

async function exported(): Promise<string[]> {
  let text = ''
  for await (const piece of log.audit.export()) text += piece
  return text.trim().split('\n')
}

describe('the chain', () => {
  it('GU-68 an export can be checked with nothing but the key: RFC 8785, HMAC-SHA-256, prev', async () => {
    await log.add(3)
    await log.store.commits.durable(() =>
      log.audit.append({
        actor: 'client_1',
        action: 'call',
        connection: 'client_1',
        session: 'ext_1',
        operation: 'op_1',
        tool: 'Write',
        argumentHash: 'ab',
        decision: 'allow',
        rule: 'session.mode',
        status: 'failed',
        errorCode: 'conflict',
        durationMs: 12.4,
        detail: { z: 'é "\u2028" 家', a: true, m: 1.5 },
      }),
    )
    const lines = await exported()
    let prev = GENESIS
    for (const line of lines.slice(0, -1)) {
      const { mac, ...entry } = JSON.parse(line)
      expect(entry.prev).toBe(prev)
      expect(createHmac('sha256', log.files.key).update(canonicalJson(entry)).digest('hex')).toBe(mac)
      prev = mac
    }
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ head: { seq: 4, mac: prev } })
    expect(JSON.parse(lines[3] ?? '')).toMatchObject({
      duration_ms: 12,
      detail: { a: true, m: 1.5 },
      rule: 'session.mode',
    })
    expect(await log.audit.verify()).toMatchObject({ ok: true, entries: 4, head: { seq: 4, mac: prev } })
  })

  it('GU-68 an entry stands and falls with the commit of what it tells of, and the chain goes on without it', async () => {
    await log.add(1)
    const both = await Promise.allSettled([
      log.store.commits.durable(() => {
        log.audit.append({ actor: 'owner', action: 'connection.created' })
        throw new Error('undone')
      }),
      log.store.commits.durable(() => log.audit.append({ actor: 'owner', action: 'connection.revoked' })),
    ])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    const rows = await log.audit.list({ filter: {}, limit: 10 })
    expect(rows.map(({ seq, action }) => [seq, action])).toEqual([
      [2, 'connection.revoked'],
      [1, 'session.changed'],
    ])
    expect(await log.audit.verify()).toMatchObject({ ok: true, entries: 2 })
  })

  it('GU-68 whatever an entry is given, it is written and fits', async () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.constant('\ud800half'), fc.constant('a\0b'))
    const number = fc.oneof(fc.double(), fc.integer(), fc.constant(Number.NaN))
    await fc.assert(
      fc.asyncProperty(text, text, number, number, async (one, other, duration, value) => {
        await log.store.commits.durable(() =>
          log.audit.append({
            actor: one,
            action: other,
            session: one,
            durationMs: duration,
            detail: { [other]: one, value, flag: true },
          }),
        )
        expect(await log.audit.verify()).toMatchObject({ ok: true })
      }),
      { numRuns: 60 },
    )
    for (const line of await exported()) JSON.parse(line)
  })

  it('GU-68 the database itself refuses to change or remove an entry', async () => {
    await log.add(2)
    expect(() => log.store.db.exec("UPDATE audit SET actor = 'nobody' WHERE seq = 1")).toThrow('never changes')
    expect(() => log.store.db.exec('DELETE FROM audit')).toThrow('never removed')
  })

  it('GU-68 key and head are made once, for the owner alone', async () => {
    await log.add(1)
    for (const name of ['audit.key', 'audit.head']) expect(statSync(join(place.keys, name)).mode & 0o777).toBe(0o600)
    const { key } = log.files
    log.close()
    log = place.open()
    expect(log.files.key).toEqual(key)
    expect(key).toHaveLength(32)
  })
})

describe('verify', () => {
  const changes = [
    ['a field', "UPDATE audit SET actor = 'nobody' WHERE seq = 601", 601, 'altered'],
    [
      'a detail that means the same',
      "UPDATE audit SET detail = replace(detail, ':', ': ') WHERE seq = 601",
      601,
      'altered',
    ],
    ['a detail that is no JSON', "UPDATE audit SET detail = '{' WHERE seq = 601", 601, 'altered'],
    ['a time beyond all dates', 'UPDATE audit SET at = 9000000000000000 WHERE seq = 601', 601, 'altered'],
    ['a MAC', "UPDATE audit SET mac = x'00' WHERE seq = 601", 601, 'altered'],
    ['an entry gone', 'DELETE FROM audit WHERE seq = 601', 601, 'missing'],
    ['the first gone', 'DELETE FROM audit WHERE seq = 1', 1, 'missing'],
    [
      'an entry gone and the rest moved up',
      'DELETE FROM audit WHERE seq = 601; UPDATE audit SET seq = seq - 1 WHERE seq > 601',
      601,
      'altered',
    ],
    [
      'two exchanged',
      'UPDATE audit SET seq = 0 WHERE seq = 601; UPDATE audit SET seq = 601 WHERE seq = 602; UPDATE audit SET seq = 602 WHERE seq = 0',
      601,
      'altered',
    ],
    ['the end cut off', 'DELETE FROM audit WHERE seq > 600', 601, 'truncated'],
    ['all gone', 'DELETE FROM audit', 1, 'truncated'],
    [
      'one put in',
      "UPDATE audit SET seq = seq + 1 WHERE seq = 603; INSERT INTO audit (seq, at, actor, action, mac) VALUES (603, 1, 'owner', 'undo', x'00')",
      603,
      'altered',
    ],
  ] as const
  it.each(changes)('GU-68 names the first entry that does not fit: %s', async (_, statement, seq, kind) => {
    await log.store.commits.durable(() => {
      for (let n = 0; n < 603; n++) log.audit.append({ actor: 'owner', action: 'undo', detail: { n } })
    })
    log.close()
    place.tamper(statement)
    log = place.open()
    expect(await log.audit.verify()).toMatchObject({ ok: false, entries: seq - 1, problem: { seq, kind } })
  })

  it('GU-68 another key fits nothing', async () => {
    await log.add(2)
    log.close()
    rmSync(join(place.keys, 'audit.key'))
    log = place.open()
    expect(await log.audit.verify()).toMatchObject({ ok: false, problem: { seq: 1, kind: 'altered' } })
  })

  it('GU-68 an exported head shows what who holds the key has rewritten, cut off, or not', async () => {
    await log.add(3)
    const head = (await log.audit.verify()).head
    await log.add(1)
    expect(await log.audit.verify(head)).toMatchObject({ ok: true, entries: 4 })
    expect(await log.audit.verify({ ...head, mac: 'ab'.repeat(32) })).toMatchObject({
      ok: false,
      problem: { seq: 3, kind: 'rewritten' },
    })
    expect(await log.audit.verify({ ...head, seq: 9 })).toMatchObject({ problem: { seq: 5, kind: 'truncated' } })
  })
})

describe('the kept head', () => {
  const keptSeq = () => Number(readFileSync(join(place.keys, 'audit.head'), 'latin1').split(' ')[0])

  it('GU-68 follows each synced commit at once, and reads only with the next one', async () => {
    expect(keptSeq()).toBe(0)
    await log.add(1)
    expect(keptSeq()).toBe(1)
    log.audit.appendLazily({ actor: 'client_1', action: 'refused' })
    log.store.commits.flush()
    expect(keptSeq()).toBe(1)
    await log.add(1)
    expect(keptSeq()).toBe(3)
  })

  it('GU-68 one that a crash left behind the log is no fault, and no alarm at the next start', async () => {
    await log.add(2)
    copyFileSync(join(place.keys, 'audit.head'), join(place.home.dir, 'old head'))
    await log.add(2)
    log.close()
    copyFileSync(join(place.home.dir, 'old head'), join(place.keys, 'audit.head'))
    log = place.open()
    await log.store.commits.durable(() => log.audit.started({ pid: 1 }))
    expect(await log.audit.verify()).toMatchObject({ ok: true, entries: 5, alarms: [] })
    expect(place.said).toEqual([])
  })

  it('GU-68 a log that was cut off while no host ran is noted at the start and told from then on', async () => {
    await log.add(5)
    log.close()
    place.tamper('DELETE FROM audit WHERE seq > 3')
    log = place.open()
    await log.store.commits.durable(() => log.audit.started({ pid: 1 }))
    await log.add(1)
    expect(place.said).toMatchObject([{ fields: { kept_seq: 5, found_seq: 3 } }])
    expect(await log.audit.verify()).toMatchObject({ ok: false, entries: 6, problem: null, alarms: [4] })
    const noted = await log.audit.list({ filter: { action: 'audit.head_mismatch' }, limit: 5 })
    expect(noted).toMatchObject([{ seq: 4, actor: 'host' }])
    expect(JSON.parse(noted[0]?.detail ?? '')).toMatchObject({ kept_seq: 5, found_seq: 3 })
  })

  it.each(['taken away', 'emptied'])('GU-68 one that was %s shows, also together with all entries', async (how) => {
    await log.add(2)
    log.close()
    place.tamper('DELETE FROM audit')
    if (how === 'emptied') writeFileSync(join(place.keys, 'audit.head'), '')
    else rmSync(join(place.keys, 'audit.head'))
    log = place.open()
    expect(await log.audit.verify()).toMatchObject({ ok: false, problem: { kind: 'no_head' } })
    await log.store.commits.durable(() => log.audit.started({ pid: 1 }))
    expect(await log.audit.verify()).toMatchObject({ ok: false, alarms: [1] })
    expect(keptSeq()).toBe(2)
  })

  it('GU-68 a crash between the making of head and key looks like no fault', () => {
    log.close()
    rmSync(join(place.keys, 'audit.key'))
    expect(openAuditFiles(place.keys).head.read()).toEqual({ seq: 0, mac: GENESIS })
    log = place.open()
  })
})

describe('list', () => {
  it('GU-68 finds by connection, session, action, tool, outcome and time, newest first, in pages', async () => {
    const start = place.clock.now()
    await log.store.commits.durable(() => {
      for (let n = 0; n < 45_000; n++) {
        if (n === 44_000) place.clock.advance(1000)
        const rare = n % 20_000 === 5
        log.audit.append({
          actor: 'host',
          action: rare ? 'undo' : 'call',
          connection: rare ? 'client_rare' : 'client_1',
          session: rare ? 'ext_rare' : null,
          tool: rare ? 'Undo' : 'Read',
          status: rare ? 'failed' : 'completed',
        })
      }
    })
    const seqs = async (filter: object, limit = 10, before?: number) =>
      (await log.audit.list({ filter, limit, before })).map(({ seq }) => seq)
    const rare = [40_006, 20_006, 6]
    expect(await seqs({ connectionId: 'client_rare' })).toEqual(rare)
    expect(await seqs({ sessionRef: 'ext_rare' })).toEqual(rare)
    expect(await seqs({ action: 'undo', tool: 'Undo', status: 'failed' })).toEqual(rare)
    expect(await seqs({ action: 'undo' }, 1)).toEqual([40_006, 20_006])
    expect(await seqs({ action: 'undo' }, 1, 40_006)).toEqual([20_006, 6])
    expect(await seqs({ since: start + 1 }, 2)).toEqual([45_000, 44_999, 44_998])
    expect((await seqs({ since: start + 1 }, 5000)).at(-1)).toBe(44_001)
    expect(await seqs({ connectionId: 'client_2' })).toEqual([])
    expect(await log.audit.verify()).toMatchObject({ ok: true, entries: 45_000 })
  })
})

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAudit } from '../../src/audit/audit.js'
import { createEvents } from '../../src/events/events.js'
import { silentLog } from '../../src/lib/log.js'
import { earlier } from '../../src/operations/claim.js'
import { recover } from '../../src/operations/recovery.js'
import { prune, STEP } from '../../src/operations/retention.js'
import type { Store } from '../../src/store/store.js'
import { createJournal } from '../../src/workspace/journal.js'
import { testOutputs } from '../helpers/shell.js'
import { ENDING, handClock, operation, storeHome } from './home.js'

const DAY = 86_400_000
const RETENTION = { days: 30, tombstoneDays: 30 }

let home: ReturnType<typeof storeHome>
let store: Store
let clock: ReturnType<typeof handClock>
let changesFolder: string
beforeEach(() => {
  home = storeHome()
  store = home.open()
  clock = handClock()
  changesFolder = join(home.dir, 'changes')
})
afterEach(() => {
  store.close()
  home.remove()
})

function finished(id: string, key: string | null = null): void {
  store.operations.insert(operation(id, { idempotency_key: key, accepted_at: clock.now() }))
  store.operations.end(id, { ...ENDING, status: 'completed' })
}

async function pruneAll(): Promise<number> {
  let steps = 1
  while (await prune({ store, clock, changesFolder, outputs: testOutputs(home.dir) }, RETENTION)) steps++
  return steps
}

const retry = (key: string) => earlier(store, operation('op_new', { idempotency_key: key }))

describe('prune', () => {
  it('OP-07 a key lasts as long as its operation, then refuses for as long again, and is free after that', async () => {
    finished('op_1', 'k')
    clock.advance(30 * DAY)
    await pruneAll()
    expect(retry('k')?.id).toBe('op_1')
    clock.advance(1)
    await pruneAll()
    expect(store.operations.get('op_1')).toBeUndefined()
    expect(() => retry('k')).toThrow(expect.objectContaining({ code: 'idempotency_expired' }))
    expect(retry('another')).toBeUndefined()
    clock.advance(30 * DAY)
    await pruneAll()
    expect(() => retry('k')).toThrow(expect.objectContaining({ code: 'idempotency_expired' }))
    clock.advance(1)
    await pruneAll()
    expect(retry('k')).toBeUndefined()
  })

  it('OP-07 a tombstone belongs to its connection and session, and does not hold the key itself', async () => {
    finished('op_1', 'a very secret key')
    clock.advance(31 * DAY)
    await pruneAll()
    const other = { idempotency_key: 'a very secret key', session_ref: 'other' }
    expect(earlier(store, operation('op_2', other))).toBeUndefined()
    expect(JSON.stringify(store.db.prepare('SELECT * FROM key_tombstones').all())).not.toContain('secret')
  })

  it('OP-07 with an operation go its result, its changes and what they kept; unfinished ones stay', async () => {
    store.operations.insert(operation('op_1', { accepted_at: clock.now() }))
    store.results.insert('op_1', 0, Buffer.alloc(300_000))
    store.changes.insert({ operation_id: 'op_1', seq: 0, session_ref: 'ref', record: '{}' })
    createJournal({ dir: changesFolder, operationId: 'op_1' }).record(
      { kind: 'modify', path: '/w/a' },
      Buffer.from('kept'),
    )
    clock.advance(31 * DAY)
    await pruneAll()
    expect(store.operations.get('op_1')).toBeDefined()
    store.operations.end('op_1', { ...ENDING, status: 'outcome_unknown' })
    await pruneAll()
    for (const table of ['operations', 'result_parts', 'changes'])
      expect(store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()).toBe(0)
    expect(existsSync(join(changesFolder, 'op_1.0'))).toBe(false)
  })

  it('GU-45 goes in smaller steps where operations have kept large files', async () => {
    for (const id of ['op_1', 'op_2', 'op_3', 'op_4']) finished(id)
    for (const id of ['op_1', 'op_2', 'op_3']) {
      await store.commits.quick(() => store.results.insert(id, 0, Buffer.alloc(20 * 1024 * 1024, 1)))
    }
    clock.advance(31 * DAY)
    const left = () => store.db.prepare('SELECT id FROM operations ORDER BY id').pluck().all()
    const step = () => prune({ store, clock, changesFolder, outputs: testOutputs(home.dir) }, RETENTION)
    expect([await step(), left()]).toEqual([true, ['op_2', 'op_3', 'op_4']])
    expect([await step(), left()]).toEqual([true, ['op_3', 'op_4']])
    expect([await step(), left()]).toEqual([false, []])
  })

  it('GU-45 goes in small steps, for operations and tombstones alike', async () => {
    await store.commits.durable(() => {
      for (let i = 0; i < 2000; i++) finished(`op_${i}`, `k${i}`)
      for (let i = 0; i < 300; i++) store.results.insert(`op_${i}`, 0, Buffer.alloc(400_000, 1))
    })
    clock.advance(31 * DAY)
    const left = (table: string) => Number(store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get())
    for (const table of ['operations', 'key_tombstones']) {
      let before = left(table)
      expect(before).toBe(2000)
      let more = true
      while (more) {
        more = await prune({ store, clock, changesFolder, outputs: testOutputs(home.dir) }, RETENTION)
        expect(before - left(table)).toBeLessThanOrEqual(STEP)
        before = left(table)
      }
      expect(before).toBe(0)
      clock.advance(31 * DAY)
    }
    expect(store.db.prepare('SELECT count(*) FROM key_tombstones').pluck().get()).toBe(0)
  })
})

describe('recover', () => {
  const deps = () => ({
    store,
    clock,
    events: createEvents(() => undefined),
    log: silentLog,
    bootId: 'boot_2',
    changesFolder,
    outputs: testOutputs(home.dir),
    audit: createAudit({ store, key: Buffer.from('key'), head: NO_HEAD, clock, log: silentLog }),
  })
  /** This store has no keys folder beside it. */
  const NO_HEAD = { read: () => undefined, write() {}, close() {} }

  it('GU-05 running side effects are of unknown outcome, reads have failed, the rest is left to go on', async () => {
    store.operations.insert(operation('op_write'))
    store.operations.insert(operation('op_read', { effect: 'read', tool: 'Read' }))
    store.operations.insert(operation('op_waits', { status: 'waiting_approval' }))
    store.operations.insert(operation('op_accepted', { status: 'accepted', started_at: null, attempt: 0 }))
    const { accepted, unknown } = await recover(deps())
    expect(accepted.map(({ id }) => id)).toEqual(['op_accepted'])
    expect(unknown).toBe(1)
    const entries = store.db
      .prepare("SELECT operation_id, status FROM audit WHERE action = 'call' ORDER BY seq")
      .raw()
      .all()
    expect(entries).toEqual([
      ['op_write', 'outcome_unknown'],
      ['op_read', 'failed'],
    ])
    expect(store.operations.get('op_write')).toMatchObject({ status: 'outcome_unknown', effects_possible: 1 })
    expect(store.operations.get('op_read')).toMatchObject({ status: 'failed', effects_possible: 0 })
    expect(store.operations.get('op_waits')?.status).toBe('waiting_approval')
    expect((await recover(deps())).unknown).toBe(0)
  })

  it('GU-05 the changes that an interrupted operation had begun are recorded; a damaged journal stops no start', async () => {
    for (const id of ['op_whole', 'op_torn']) {
      store.operations.insert(operation(id))
      const journal = createJournal({ dir: changesFolder, operationId: id })
      for (const path of ['/w/a', '/w/b', '/w/c']) journal.record({ kind: 'modify', path }, Buffer.from('old'))
    }
    writeFileSync(join(changesFolder, 'op_torn.1'), 'damaged')
    expect((await recover(deps())).unknown).toBe(2)
    expect(store.changes.ofOperation('op_whole').map(({ seq }) => seq)).toEqual([0, 1, 2])
    expect(store.operations.get('op_torn')?.status).toBe('outcome_unknown')
  })
})

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../src/lib/async.js'
import { KikiError } from '../../src/lib/errors.js'
import { fingerprint } from '../../src/operations/claim.js'
import type { Work } from '../../src/operations/operations.js'
import { prune, STEP } from '../../src/operations/retention.js'
import { createJournal } from '../../src/workspace/journal.js'
import { type Core, openCore } from './harness.js'

const DAY = 86_400_000

let core: Core

beforeEach(async () => {
  core = await openCore()
})
afterEach(() => core.close())

const done: Work = async () => ({ content: [{ type: 'text', text: 'done' }] })

/** Claims and carries out. */
async function run(key: string | undefined, work: Work = done, args: unknown = {}) {
  const claim = await core.operations.claim(core.request(key, args))
  if (claim.kind !== 'new') throw new Error(`the claim is ${claim.kind}`)
  await core.operations.run(claim.live, work)
  return claim.live.id
}

const refusal = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return error instanceof KikiError ? error.code : error
}

it('GU-01 GU-02 the row is on disk as running, with everything that it rests on, before the work is called', async () => {
  let seen: unknown
  const id = await run(
    'k',
    async (live) => {
      seen = core.store.operations.get(live.id)
      return done(live)
    },
    { b: 1, a: 'x' },
  )
  expect(seen).toMatchObject({
    id,
    status: 'running',
    idempotency_key: 'k',
    arguments: '{"a":"x","b":1}',
    fingerprint: fingerprint('Write', { a: 'x', b: 1 }).hash,
    connection_id: core.connection.id,
    session_ref: core.session.ref,
    policy_version: 1,
    boot_id: 'boot_test',
    attempt: 1,
  })
})

it('GU-03 the outcome is on disk when the answer is there', async () => {
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  const answered = core.operations.answer(claim.live, 10_000, { text: 1000, media: 1000 }).then(() => {
    return core.store.operations.get(claim.live.id)?.status
  })
  await core.operations.run(claim.live, done)
  expect(await answered).toBe('completed')
})

it('GU-04 a terminal row never changes, whoever asks', async () => {
  const id = await run('k')
  const before = core.store.operations.get(id)
  const ending = {
    status: 'failed',
    ended_at: 1,
    error_code: 'x',
    effects_possible: 1,
    result: null,
    result_chars: 0,
  } as const
  expect(core.store.operations.end(id, ending)).toBe(false)
  expect(core.store.operations.start(id, 'boot_other', 1)).toBe(false)
  for (const change of ["status = 'running'", "result = 'other'", 'effects_possible = 1', 'ended_at = NULL']) {
    expect(() => core.store.db.exec(`UPDATE operations SET ${change}`)).toThrow('a finished operation never changes')
  }
  expect(core.store.operations.get(id)).toEqual(before)
})

it('GU-10 a call’s fingerprint is that of its canonical form', () => {
  const hash = (args: unknown, tool = 'Write') => fingerprint(tool, args).hash
  const base = hash({ a: 1, b: ['é', { c: null, d: true }] })
  expect(hash(JSON.parse('{"b":["\\u00e9",{"d":true,"c":null}],"a":1.0}'))).toBe(base)
  for (const other of [
    { a: 2, b: ['é', { c: null, d: true }] },
    { a: 1, b: ['é'.normalize('NFD'), { c: null, d: true }] },
    { a: '1', b: [] },
    {},
  ]) {
    expect(hash(other)).not.toBe(base)
  }
  expect(hash({ a: 1, b: ['é', { c: null, d: true }] }, 'Edit')).not.toBe(base)
  expect(hash({}, 'A\n{}')).not.toBe(hash({ '': 1 }, 'A'))
  expect(() => fingerprint('Write', { a: 2 ** 53 })).toThrow(/beyond 2\^53/)
  expect(() => fingerprint('Write', { a: 2 ** 53 - 1 })).not.toThrow()
})

it('OP-07 keys live as long as their operation, then a tombstone refuses them, then they are free', async () => {
  const retention = { days: 30, tombstoneDays: 30 }
  const id = await run('k')
  createJournal({ dir: core.changesFolder, operationId: id }).record({ kind: 'create', path: '/x' })
  const pruned = () =>
    prune({ store: core.store, clock: core.clock, changesFolder: core.changesFolder, outputs: core.outputs }, retention)
  core.time.now += 30 * DAY - 1
  expect(await pruned()).toBe(false)
  expect((await core.operations.claim(core.request('k'))).kind).toBe('over')
  core.time.now += 2
  await pruned()
  expect(core.store.operations.get(id)).toBeUndefined()
  expect(await refusal(core.operations.claim(core.request('k')))).toBe('idempotency_expired')
  core.time.now += 30 * DAY - 1
  await pruned()
  expect(await refusal(core.operations.claim(core.request('k')))).toBe('idempotency_expired')
  expect(await refusal(core.operations.claim(core.request('k', { other: true })))).toBe('idempotency_expired')
  core.time.now += 2
  await pruned()
  expect((await core.operations.claim(core.request('k'))).kind).toBe('new')
})

it('OP-07 pruning goes in small steps and leaves what is not over', async () => {
  const waiting = await core.operations.claim(core.request('waiting'))
  for (let i = 0; i < STEP + 1; i++) await run(`k${i}`)
  core.time.now += 31 * DAY
  const deps = { store: core.store, clock: core.clock, changesFolder: core.changesFolder, outputs: core.outputs }
  expect(await prune(deps, { days: 30, tombstoneDays: 30 })).toBe(true)
  expect(core.store.operations.list({ limit: 10 })).toHaveLength(2)
  expect(await prune(deps, { days: 30, tombstoneDays: 30 })).toBe(false)
  const left = core.store.operations.list({ limit: 10 })
  expect(left.map((row) => row.id)).toEqual([waiting.kind === 'new' ? waiting.live.id : ''])
})

it('GU-12 a full disk refuses the call, runs nothing and uses up no key', async () => {
  core.store.commits.flush()
  const pages = Number(core.store.db.pragma('page_count', { simple: true }))
  core.store.db.pragma(`max_page_count = ${pages}`)
  const large = { content: 'x'.repeat(1_000_000) }
  await expect(core.operations.claim(core.request('k', large))).rejects.toThrow(/full/)
  expect(core.operations.lives()).toEqual([])
  core.store.db.pragma('max_page_count = 1073741823')
  expect((await core.operations.claim(core.request('k', large))).kind).toBe('new')
})

it('OP-11 OP-16 an outcome that cannot be saved is outcome_unknown for everyone who asks, until the next start says so too', async () => {
  let runs = 0
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  core.store.db.exec("CREATE TRIGGER full BEFORE UPDATE ON operations BEGIN SELECT RAISE(ABORT, 'disk full'); END")
  await core.operations.run(claim.live, (live) => {
    runs++
    return done(live)
  })
  const limits = { text: 1000, media: 1000 }
  const first = await core.operations.answer(claim.live, 0, limits)
  expect(first._meta['kiki/error']).toMatchObject({
    code: 'outcome_unknown',
    message: expect.stringContaining('disk full'),
  })
  const again = await core.operations.claim(core.request('k'))
  expect(again.kind).toBe('joined')
  if (again.kind === 'joined') expect(await core.operations.answer(again.live, 0, limits)).toEqual(first)
  expect(runs).toBe(1)
})

it('OP-11 work that was told to stop and is not seen ending is outcome_unknown, also when it ends later', async () => {
  const end = deferred<void>()
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  const running = core.operations.run(claim.live, async (live) => {
    await end.promise
    return done(live)
  })
  const row = await core.operations.cancel(claim.live.id, 'test')
  expect(row).toMatchObject({ status: 'outcome_unknown', effects_possible: 1 })
  const over = await core.operations.claim(core.request('k'))
  if (over.kind !== 'over') throw new Error(over.kind)
  const replay = core.operations.replay(over.row, { text: 1000, media: 1000 })
  expect(replay.content[1]).toMatchObject({
    text: expect.stringMatching(/its end was not seen within 2 s.*Inspect the target/),
  })
  end.resolve()
  await running
  expect(core.store.operations.get(claim.live.id)).toEqual(row)
})

it('OP-11 work that Kiki saw end is cancelled, with effects possible once it had begun', async () => {
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  const began = deferred<void>()
  const running = core.operations.run(claim.live, (live) => {
    began.resolve()
    return new Promise((_, reject) => {
      live.controller.signal.addEventListener('abort', () => reject(live.controller.signal.reason))
    })
  })
  await began.promise
  expect(await core.operations.cancel(claim.live.id, 'test')).toMatchObject({
    status: 'cancelled',
    effects_possible: 1,
  })
  await running
  expect(await core.operations.cancel(claim.live.id, 'test')).toMatchObject({ status: 'cancelled' })
})

it('OP-06 a tool that fails by a bug has failed, is told so without its inside, and is replayed so', async () => {
  const id = await run('k', () => Promise.reject(new Error('a secret detail')))
  const row = core.store.operations.get(id)
  expect(row).toMatchObject({ status: 'failed', error_code: 'internal_error' })
  expect(row?.result).not.toContain('secret')
  const over = await core.operations.claim(core.request('k'))
  if (over.kind !== 'over') throw new Error(over.kind)
  expect(core.operations.replay(over.row, { text: 1000, media: 1000 })).toMatchObject({
    isError: true,
    _meta: { 'kiki/operation': { operation_id: id, status: 'failed', replayed: true } },
  })
})

it('GU-08 a plain read has no row while it runs, and one that was asked about has', async () => {
  const claim = await core.operations.claim({ ...core.request(undefined), tool: 'Read', effect: 'read' })
  if (claim.kind !== 'new') throw new Error(claim.kind)
  expect(core.store.operations.get(claim.live.id)).toBeUndefined()
  expect(await core.operations.find(core.connection.id, claim.live.id)).toMatchObject({ status: 'running' })
  await core.operations.run(claim.live, done)
  expect(core.store.operations.get(claim.live.id)).toMatchObject({ status: 'completed' })
})

describe('a read that is cancelled when its work is done', () => {
  const long: Work = async () => ({ content: [{ type: 'text', text: 'x'.repeat(100_000) }] })
  const short: Work = async () => ({ content: [{ type: 'text', text: 'x' }] })
  const failing: Work = async () => {
    throw new KikiError('not_found', 'It is not there.')
  }

  it.each([
    ['kept', long, 'completed'],
    ['not kept', short, 'completed'],
    ['a failure', failing, 'failed'],
  ] as const)('GU-24 at any await (%s): it stays as it ended', async (_name, work, status) => {
    for (let steps = 0; steps < 40; steps++) {
      const claim = await core.operations.claim({ ...core.request(undefined), effect: 'read', tool: 'Read' })
      if (claim.kind !== 'new') throw new Error(`the claim is ${claim.kind}`)
      const { live } = claim
      const worked = deferred<void>()
      const running = core.operations.run(live, async () => {
        // Its last word: everything after this is the saving.
        queueMicrotask(worked.resolve)
        return work(live)
      })
      await worked.promise
      for (let step = 0; step < steps; step++) await Promise.resolve()
      const told = core.operations.find(core.connection.id, live.id)
      const answered = core.operations.answer(live, 20_000, live.limits, { signal: AbortSignal.abort() })
      const cancelled = core.operations.cancel(live.id, 'The stream has ended.')
      await running
      expect((await live.ended.promise).status).toBe(status)
      expect(await cancelled).toMatchObject({ status })
      expect((await told).id).toBe(live.id)
      expect(['running', status]).toContain(((await answered)._meta['kiki/operation'] as { status: string }).status)
      await core.operations.settleRecords()
      expect(core.store.operations.get(live.id)).toMatchObject({ status })
      expect(core.operations.lives()).toEqual([])
      // Nobody who is gone by now is told that it still runs.
      const late = await core.operations.answer(live, 20_000, live.limits, { signal: AbortSignal.abort() })
      expect(late._meta['kiki/operation']).toMatchObject({ status })
    }
  })
})

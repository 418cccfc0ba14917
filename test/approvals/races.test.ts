import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type ApprovalCore, openApprovals } from './harness.js'

const RACES = 500

let core: ApprovalCore
let consumed: () => void
beforeEach(async () => {
  core = await openApprovals()
  consumed = core.approvals.consumers.add()
})
afterEach(() => {
  consumed()
  core.close()
})

type Asked = Awaited<ReturnType<ApprovalCore['ask']>>

/** Both at once, one a few turns of the loop later, in changing order. @returns what the approval said. */
async function race(round: number, asked: Asked, other: () => Promise<unknown>): Promise<boolean> {
  const approve = () =>
    core.approvals.answer(asked.id, { answer: 'approved', by: 'owner' }).then(({ changed }) => changed)
  const later = async <T>(work: () => Promise<T>) => {
    for (let turn = round % 5; turn > 0; turn--) await setImmediate()
    return work()
  }
  const [won] =
    round % 2 === 0 ? await Promise.all([approve(), later(other)]) : await Promise.all([later(approve), other()])
  await asked.live.ended.promise
  return won
}

/** One winner: what ran is `completed`, what did not is `cancelled` without effects, and nobody is left waiting. */
function judge({ live: { id } }: Asked, approved: boolean): void {
  const row = core.store.operations.get(id)
  const ran = core.runs(id)
  expect(ran).toBeLessThanOrEqual(1)
  if (!approved) expect(ran).toBe(0)
  if (ran === 0) expect(row).toMatchObject({ status: 'cancelled', effects_possible: 0 })
  else expect(['completed', 'cancelled']).toContain(row?.status)
  expect(core.operations.live(id)).toBeUndefined()
}

it('GU-31 AP-06 approve/approve: one of them, one run, 500 times', async () => {
  for (let round = 0; round < RACES; round++) {
    const asked = await core.ask()
    let second: Promise<boolean> = Promise.resolve(false)
    const first = await race(round, asked, () => {
      second = core.approvals.answer(asked.id, { answer: 'approved', by: 'owner' }).then(({ changed }) => changed)
      return second
    })
    expect([first, await second].filter((won) => won)).toHaveLength(1)
    expect(core.runs(asked.live.id)).toBe(1)
    expect(core.store.operations.get(asked.live.id)?.status).toBe('completed')
  }
})

it('GU-31 approve/deny: one of them, 500 times', async () => {
  for (let round = 0; round < RACES; round++) {
    const asked = await core.ask()
    let denied: Promise<boolean> = Promise.resolve(false)
    const approved = await race(round, asked, () => {
      denied = core.approvals.answer(asked.id, { answer: 'denied', by: 'owner' }).then(({ changed }) => changed)
      return denied
    })
    expect(await denied).toBe(!approved)
    expect(core.runs(asked.live.id)).toBe(approved ? 1 : 0)
    judge(asked, approved)
  }
})

it('GU-31 AP-06 approve/cancel: one winner, 500 times', async () => {
  const won = new Set<boolean>()
  for (let round = 0; round < RACES; round++) {
    const asked = await core.ask()
    const approved = await race(round, asked, () => core.operations.cancel(asked.live.id, 'The client cancelled it.'))
    judge(asked, approved)
    won.add(approved)
  }
  expect(won.size).toBe(2)
})

it('GU-31 GU-30 approve/revoke: one winner, and nothing begins after the revoke, 500 times', async () => {
  const won = new Set<boolean>()
  for (let round = 0; round < RACES; round++) {
    const place = await core.place()
    const asked = await core.ask(place)
    let before = 0
    const approved = await race(round, asked, async () => {
      await core.lifecycle.revoke(place.connection)
      before = core.runs(asked.live.id)
    }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'connection_revoked' })
      return false
    })
    expect(core.runs(asked.live.id)).toBe(before)
    judge(asked, approved)
    won.add(approved)
  }
  expect(won.size).toBe(2)
})

it('GU-31 AP-08 approve/policy change: one winner, and an old yes starts nothing, 500 times', async () => {
  const won = new Set<boolean>()
  for (let round = 0; round < RACES; round++) {
    const place = await core.place()
    const asked = await core.ask(place)
    let before = 0
    const approved = await race(round, asked, async () => {
      await core.lifecycle.change(place.connection, { grant: { ceiling: 'manual' } })
      before = core.runs(asked.live.id)
    })
    expect(core.runs(asked.live.id)).toBe(before)
    judge(asked, approved)
    won.add(approved)
  }
  expect(won.size).toBe(2)
})

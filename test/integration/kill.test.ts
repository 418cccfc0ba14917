import { beforeEach, describe, expect, it } from 'vitest'
import { callApi } from '../helpers/host.js'
import { carryOut, createMember, isReplay, type Member } from '../torture/crew.js'
import { type Deed, KINDS, prepare } from '../torture/deeds.js'
import { judge } from '../torture/judge.js'
import { killRun } from '../torture/kill-run.js'
import {
  arm,
  createWorld,
  type FaultyHost,
  grant,
  inspect,
  kill,
  spawnHost,
  startFaulty,
  stop,
  type World,
} from '../torture/world.js'

let world: World
let board: { up(): Promise<void>; home: string; connection: string; session: string }
let host: FaultyHost
let next: ReturnType<typeof spawnHost>

beforeEach(async () => {
  world = createWorld()
  next = spawnHost(world)
  host = await start()
  board = { up: () => ready, home: world.home, ...(await grant(host, world)) }
  return async () => {
    next.kill('SIGKILL')
    await kill(host)
    world.close()
  }
})

/** Resolves while a host is ready. */
let ready = Promise.resolve()

async function start(): Promise<FaultyHost> {
  const child = next
  next = spawnHost(world)
  const started = await startFaulty(world, undefined, child)
  if (started === undefined) throw new Error('the host did not start')
  return started
}

/** The next host, once the one before it is dead. */
function restart(): Promise<FaultyHost> {
  const starting = start()
  ready = starting.then(() => undefined)
  return starting
}

/** Runs the last call while the host dies at its n-th commit boundary from now; false when it lived through the call. */
async function callThrough(member: Member, deeds: Deed[], boundary: number): Promise<boolean> {
  const deed = deeds.at(-1) as Deed
  // Opened first, and what that left to be written is written, so that only boundaries of the call are counted.
  await member.open()
  await callApi(host.socket, 'GET', '/api/operations?limit=1')
  await arm(host, boundary)
  const calling = carryOut(member, deed)
  const over = await Promise.race([host.gone.then(() => false), calling.then(() => true)])
  const survived = over && (await arm(host, Number.MAX_SAFE_INTEGER))
  if (!survived) {
    await host.gone
    expect(judge(world, deeds, true)).toEqual([])
    host = await restart()
  }
  await calling
  return !survived
}

describe('a host that dies at a commit boundary', () => {
  it.each(KINDS)(
    'GU-06 %s: whichever boundary of a call it is, the call never runs twice and is never lost',
    async (kind) => {
      const deeds: Deed[] = []
      const member = createMember(board, KINDS.indexOf(kind) % 2 === 0 ? 'v1' : 'v2 2026-07-28')
      for (let boundary = 1, died = true; died; boundary++) {
        const deed = prepare(world.workspace, kind, `${kind}-${boundary}`)
        deeds.push(deed)
        died = await callThrough(member, deeds, boundary)
      }
      for (const deed of deeds) {
        const given = deed.answer
        expect(isReplay(await carryOut(member, deed))).toBe(true)
        expect(deed.answer).toEqual(given)
      }
      await member.close()
      await kill(host)
      expect(judge(world, deeds, true)).toEqual([])
      host = await restart()
      const ends = deeds.map(({ answer }) => answer?.status)
      // Before and after the claim, before and after the end; a call that itself writes to the database has more.
      expect(ends.length).toBeGreaterThanOrEqual(5)
      expect(ends[0]).toBe('completed')
      expect(ends.slice(1, 3)).toEqual(['outcome_unknown', 'outcome_unknown'])
      expect(ends.at(-1)).toBe('completed')
    },
    300_000,
  )

  it('GU-06 GU-05 also while it starts: what ran is of unknown outcome, what waited begins once', async () => {
    const one = { ...board, ...(await grant(host, world, { concurrency: 1 })) }
    const member = createMember(one, 'v1')
    await member.open()
    const deeds = ['first', 'second'].map((key) => prepare(world.workspace, 'edit', key))
    await arm(host, 2)
    const calls = Promise.all(deeds.map((deed) => carryOut(member, deed)))
    await host.gone
    let boundary = 0
    for (let started: FaultyHost | undefined; started === undefined; ) {
      expect(judge(world, deeds, true)).toEqual([])
      started = await startFaulty(world, ++boundary)
      if (started !== undefined && (await arm(started, Number.MAX_SAFE_INTEGER))) host = started
      else started = undefined
    }
    ready = Promise.resolve()
    await calls
    await member.close()
    await stop(host)
    expect(boundary).toBeGreaterThanOrEqual(5)
    expect(judge(world, deeds, true)).toEqual([])
    const { rows } = inspect(world, true)
    expect(rows.get('first')).toMatchObject({ status: 'outcome_unknown', attempt: 1 })
    expect(deeds[0]?.effects).toBe(0)
    // It began once, in one of the starts; where that one died meanwhile, its outcome is unknown.
    expect(rows.get('second')?.status).toMatch(/^(completed|outcome_unknown)$/)
    expect(rows.get('second')?.attempt).toBe(1)
    host = await restart()
  }, 300_000)
})

it('GU-06 GU-11 at random instants under load, from several bridges, nothing runs twice and no answer is lost or changed', async () => {
  const { faults, ...figures } = await killRun({ kills: 15, clients: 2, parallel: 4, seed: 7 })
  expect(faults).toEqual([])
  expect(figures.kills).toBe(15)
  expect(figures.interrupted).toBeGreaterThan(0)
  expect(figures.replayed).toBe(figures.calls)
  expect(figures.completed + figures.unknown).toBe(figures.calls)
}, 300_000)

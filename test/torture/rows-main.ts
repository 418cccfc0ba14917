import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { homePaths } from '../../src/config/home.js'
import { openStore } from '../../src/store/store.js'
import { connectClient } from '../helpers/clients.js'
import { callApi } from '../helpers/host.js'
import { operation } from '../store/home.js'
import type { TortureOptions, TortureResult } from './main.js'
import { createWorld, type FaultyHost, grant, spawnHost, startFaulty, stop, type World } from './world.js'

/** How much slower a full database may be. */
const RATIO = 2
/** How much longer the host's start and stop may take (SP-14). */
const START_RATIO = 1.5
const ROUNDS = 200

/**
 * What the owner's list, a replay and a new call cost beside so many operations, and beside none. Both hosts are up
 * and are asked in turn, so that whatever else the machine does weighs on both.
 */
export async function main({ rows, say }: Pick<TortureOptions, 'rows' | 'say'>): Promise<TortureResult> {
  const worlds = [createWorld(), createWorld()] as const
  try {
    const none = await place(worlds[0], 0)
    const all = await place(worlds[1], rows)
    say(`${rows} rows are there`)
    const figures: TortureResult['figures'] = [['operation rows', rows]]
    const faults: string[] = []
    const add = (what: string, empty: number, full: number, most: number) => {
      const ratio = full / empty
      const text = [empty, full, ratio].map((n) => n.toFixed(2)).join(', ')
      figures.push([`${what}: ms beside none, beside all, ratio`, text])
      if (ratio > most) faults.push(`${what} takes ${ratio.toFixed(2)} times as long`)
    }
    for (const what of ['list', 'replay', 'call'] as const) {
      add(what, ...(await inTurn(ROUNDS, none.deeds[what], all.deeds[what])), RATIO)
    }
    await none.close()
    await all.close()
    const [empty, full] = await inTurn(
      9,
      () => startAndStop(worlds[0]),
      () => startAndStop(worlds[1]),
    )
    add('start and stop', empty, full, START_RATIO)
    return { figures, faults }
  } finally {
    for (const world of worlds) world.close()
  }
}

/** A host over a database with so many operations, and a client of it. */
async function place(world: World, rows: number) {
  const first = await started(world)
  const granted = await grant(first, world)
  await stop(first)
  await fill(world, granted, rows)
  const host = await started(world)
  const client = await connectClient(world, granted.connection, 'v1', { session: granted.session })
  writeFileSync(join(world.workspace, 'a.txt'), '.')
  const write = (key: string) => client.call('Write', { path: 'a.txt', content: key, _kiki: { idempotency_key: key } })
  await write('replayed')
  const deeds = {
    list: () => callApi(host.socket, 'GET', '/api/operations?limit=50'),
    replay: () => write('replayed'),
    call: (i: number) => write(`new ${i}`),
  }
  const close = async () => {
    await client.close()
    await stop(host)
  }
  return { deeds, close }
}

async function started(world: World): Promise<FaultyHost> {
  const host = await startFaulty(world, undefined, spawnHost(world))
  if (host === undefined) throw new Error('the host did not start')
  return host
}

async function startAndStop(world: World): Promise<void> {
  await stop(await started(world))
}

type Deed = (i: number) => Promise<unknown>

/** Medians in milliseconds, of the rounds after the first quarter. */
async function inTurn(rounds: number, ...deeds: [Deed, Deed]): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let i = 0; i < rounds; i++) {
    for (const which of [0, 1] as const) {
      const before = performance.now()
      await deeds[which](i)
      if (i >= rounds / 4) times[which].push(performance.now() - before)
    }
  }
  return [median(times[0]), median(times[1])]
}

function median(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}

async function fill(
  { home }: World,
  { connection, session }: Awaited<ReturnType<typeof grant>>,
  rows: number,
): Promise<void> {
  const paths = homePaths(home)
  const files = { database: paths.database, marker: join(paths.keys, 'database'), ballast: paths.ballast }
  const store = openStore(files, (error) => {
    throw error
  })
  const now = Date.now()
  const STEP = 5000
  for (let from = 0; from < rows; from += STEP) {
    await store.commits.quick(() => {
      for (let i = from; i < Math.min(from + STEP, rows); i++) {
        const fields = {
          connection_id: connection,
          session_ref: session,
          idempotency_key: `old ${i}`,
          accepted_at: now,
        }
        const over = { status: 'completed' as const, ended_at: now, result: '{"content":[]}' }
        store.operations.insert(operation(`op_old${i}`, { ...fields, ...over }))
      }
    })
  }
  store.close()
}

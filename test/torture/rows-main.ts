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
const ROUNDS = 40

interface Times {
  list: number
  replay: number
  call: number
}

/** What the owner's list, a replay and a new call cost beside so many operations, and beside none. */
export async function main({ rows, say }: Pick<TortureOptions, 'rows' | 'say'>): Promise<TortureResult> {
  const world = createWorld()
  try {
    const place = await withHost(world, (host) => grant(host, world))
    const empty = await measure(world, place)
    await fill(world, place, rows)
    say(`${rows} rows are there`)
    const full = await measure(world, place)
    const figures: TortureResult['figures'] = [['operation rows', rows]]
    const faults: string[] = []
    for (const what of ['list', 'replay', 'call'] as const) {
      const ratio = full[what] / empty[what]
      figures.push([
        `${what}: ms beside none, beside all, ratio`,
        `${empty[what].toFixed(2)}, ${full[what].toFixed(2)}, ${ratio.toFixed(2)}`,
      ])
      if (ratio > RATIO) faults.push(`${what} takes ${ratio.toFixed(2)} times as long`)
    }
    return { figures, faults }
  } finally {
    world.close()
  }
}

type Place = Awaited<ReturnType<typeof grant>>

async function withHost<T>(world: World, work: (host: FaultyHost) => Promise<T>): Promise<T> {
  const host = await startFaulty(world, undefined, spawnHost(world))
  if (host === undefined) throw new Error('the host did not start')
  try {
    return await work(host)
  } finally {
    await stop(host)
  }
}

/** Medians in milliseconds. */
function measure(world: World, { connection, session }: Place): Promise<Times> {
  return withHost(world, async ({ socket }) => {
    const client = await connectClient(world, connection, 'v1', { session })
    writeFileSync(join(world.workspace, 'a.txt'), '.')
    const write = (key: string) =>
      client.call('Write', { path: 'a.txt', content: key, _kiki: { idempotency_key: key } })
    const run = `${Math.round(performance.now())}`
    await write(`${run} replayed`)
    const times: Times = {
      list: await median(() => callApi(socket, 'GET', '/api/operations?limit=50')),
      replay: await median(() => write(`${run} replayed`)),
      call: await median((i) => write(`${run} ${i}`)),
    }
    await client.close()
    return times
  })
}

async function median(work: (i: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const before = performance.now()
    await work(i)
    if (i >= ROUNDS / 4) times.push(performance.now() - before)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}

async function fill({ home }: World, { connection, session }: Place, rows: number): Promise<void> {
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

import type { ChildProcess } from 'node:child_process'
import type { Era } from '../helpers/clients.js'
import { generator } from '../helpers/random.js'
import { carryOut, createMember, isReplay, type Member, type Switchboard, savedContent } from './crew.js'
import { type Deed, KINDS, prepare } from './deeds.js'
import { judge } from './judge.js'
import {
  createWorld,
  type FaultyHost,
  grant,
  inspect,
  kill,
  spawnHost,
  startFaulty,
  stop,
  type World,
} from './world.js'

export interface KillRunOptions {
  kills: number
  /** Bridges with a client each. */
  clients: number
  /** Calls that each client has in flight. */
  parallel: number
  /** Of the instants; the same seed gives the same instants, not the same interleaving. */
  seed: number
  /** No more kills after so long. */
  minutes?: number
  onKill?(kills: number, calls: number): void
}

export interface KillFigures {
  kills: number
  /** Kills before the host was ready. */
  duringStart: number
  calls: number
  /** Calls that were left unanswered by a kill at least once. */
  interrupted: number
  completed: number
  unknown: number
  /** Calls of unknown outcome whose effect did happen. */
  unknownWithEffect: number
  /** Rows that were found waiting for their turn after a kill. */
  foundAccepted: number
  replayed: number
  faults: string[]
  seconds: number
}

interface Run extends KillRunOptions {
  world: World
  board: Switchboard & { ready(): void; down(): void }
  random(): number
  open: Set<Deed>
  over: Deed[]
  figures: KillFigures
  ending: boolean
  next: ChildProcess
  /** Resolves at the next answer to a call, or when there will be none. */
  answered(): Promise<void>
  onAnswer(): void
}

const ERAS: readonly Era[] = ['v1', 'v2 legacy', 'v2 2026-07-28']
/** One in so many kills comes before the host is ready. */
const START_KILLS = 8
/** One in so many kills does not wait until the host has answered something. */
const EARLY_KILLS = 8
/** Latest instant after that, in milliseconds. */
const LATEST_MS = 250
/** Every so many kills the whole database is checked. */
const WHOLE_CHECK = 25

/** Kills a host under load at random instants, and says what became of every call (GU-06). */
export async function killRun(options: KillRunOptions): Promise<KillFigures> {
  const world = createWorld()
  try {
    return await runIn(world, options)
  } finally {
    world.close()
  }
}

async function runIn(world: World, options: KillRunOptions): Promise<KillFigures> {
  const before = performance.now()
  const first = await mustStart(world)
  // Below what is in flight, so that some calls wait for their turn.
  const concurrency = Math.max(2, Math.floor((options.clients * options.parallel) / 2))
  const run: Run = {
    ...options,
    world,
    board: { ...switchboard(), home: world.home, ...(await grant(first, world, { concurrency })) },
    random: generator(options.seed),
    open: new Set(),
    over: [],
    figures: {
      kills: 0,
      duringStart: 0,
      calls: 0,
      interrupted: 0,
      completed: 0,
      unknown: 0,
      unknownWithEffect: 0,
      foundAccepted: 0,
      replayed: 0,
      faults: [],
      seconds: 0,
    },
    ending: false,
    next: spawnHost(world),
    ...signal(),
  }
  run.board.ready()
  const crew = Array.from({ length: options.clients }, (_, i) => createMember(run.board, ERAS[i % ERAS.length] ?? 'v1'))
  const work = Promise.all(
    crew.flatMap((member, m) =>
      Array.from({ length: options.parallel }, (_, w) => keepCalling(run, member, `${m}.${w}`)),
    ),
  )
  let failed: unknown
  work.catch((error: unknown) => {
    failed = error
    run.onAnswer()
  })
  let host = first
  const until = before + (options.minutes ?? 60) * 60_000
  while (run.figures.kills < options.kills && performance.now() < until && failed === undefined)
    host = await killOnce(run, host)
  run.ending = true
  await work
  await replayAll(run, crew)
  await Promise.all(crew.map((member) => member.close()))
  await stop(host)
  run.next.kill('SIGKILL')
  run.figures.faults.push(...judge(world, run.over, true))
  run.figures.seconds = Math.round((performance.now() - before) / 1000)
  return summed(run)
}

async function mustStart(world: World, child = spawnHost(world)): Promise<FaultyHost> {
  const host = await startFaulty(world, undefined, child)
  if (host === undefined) throw new Error('the host was killed by somebody else')
  return host
}

/** Kills the host somewhere, looks at what it left, and starts the next one, which may be killed while it starts. */
async function killOnce(run: Run, host: FaultyHost): Promise<FaultyHost> {
  if (run.random() >= 1 / EARLY_KILLS) await run.answered()
  await after(run.random() * LATEST_MS)
  run.board.down()
  await kill(host)
  killed(run)
  while (run.random() < 1 / START_KILLS && run.figures.kills < run.kills) {
    const child = takeNext(run)
    const started = startFaulty(run.world, undefined, child)
    await after(run.random() * 150)
    child.kill('SIGKILL')
    await (await started)?.gone
    run.figures.duringStart++
    killed(run)
  }
  const next = await mustStart(run.world, takeNext(run))
  run.board.ready()
  return next
}

/** The next host is loaded while the one before it works. */
function takeNext(run: Run): ChildProcess {
  const child = run.next
  run.next = spawnHost(run.world)
  return child
}

function killed(run: Run): void {
  const { figures, world, open } = run
  figures.kills++
  figures.faults.push(...judge(world, open, figures.kills % WHOLE_CHECK === 0))
  for (const { status } of inspect(world, false).rows.values()) if (status === 'accepted') figures.foundAccepted++
  run.onKill?.(figures.kills, figures.calls)
}

async function keepCalling(run: Run, member: Member, name: string): Promise<void> {
  for (let i = 0; !run.ending; i++) {
    const kind = KINDS[(i + name.length + name.charCodeAt(0)) % KINDS.length] ?? 'edit'
    const deed = prepare(run.world.workspace, kind, `${kind}-${name}-${i}`)
    run.open.add(deed)
    run.figures.calls++
    const before = run.figures.kills
    await carryOut(member, deed)
    run.onAnswer()
    if (run.figures.kills !== before) run.figures.interrupted++
    run.open.delete(deed)
    run.over.push(deed)
  }
}

/** Every call is repeated once more: nothing runs, and the answer is the one that was given. */
async function replayAll(run: Run, crew: Member[]): Promise<void> {
  const left = [...run.over]
  const one = async (member: Member) => {
    for (let deed = left.pop(); deed !== undefined; deed = left.pop()) {
      const { answer } = deed
      const again = await carryOut(member, deed)
      const same = JSON.stringify(savedContent(again)) === JSON.stringify(answer?.content)
      if (isReplay(again) && same) run.figures.replayed++
      else
        run.figures.faults.push(`${deed.key}: its replay is not what was answered: ${JSON.stringify([answer, again])}`)
      if (answer !== undefined) deed.answer = answer
    }
  }
  await Promise.all(crew.map(one))
}

function summed({ figures, over }: Run): KillFigures {
  for (const { answer, effects } of over) {
    if (answer?.status === 'completed') figures.completed++
    if (answer?.status === 'outcome_unknown') figures.unknown++
    if (answer?.status === 'outcome_unknown' && effects === 1) figures.unknownWithEffect++
  }
  return figures
}

function switchboard() {
  let waiting: (() => void)[] = []
  let isUp = false
  return {
    up: () => (isUp ? Promise.resolve() : new Promise<void>((resolve) => waiting.push(resolve))),
    down: () => {
      isUp = false
    },
    ready: () => {
      isUp = true
      for (const go of waiting) go()
      waiting = []
    },
  }
}

function signal() {
  let waiting: (() => void)[] = []
  return {
    answered: () => new Promise<void>((resolve) => waiting.push(resolve)),
    onAnswer: () => {
      for (const go of waiting) go()
      waiting = []
    },
  }
}

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

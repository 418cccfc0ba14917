import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { canonicalJson } from '../lib/json.js'
import type { Log } from '../lib/log.js'
import { type ChildRecords, removePlaceholders } from '../processes/child-records.js'
import type { CommandSpawnOptions, RunningCommand } from '../processes/command.js'
import { type ConfinedProcesses, openConfined } from '../processes/confined.js'
import { type Confinement, isHidden } from './confinement.js'
import { type Engine, type EngineDeps, findEngine } from './engine.js'
import type { AllowedHosts, SandboxNetwork } from './network.js'

/** What one session's commands are confined to, before the sandbox adds what it makes itself. */
export interface SandboxTerms extends Omit<Confinement, 'temporary' | 'programs'> {
  /** Not there and not to be made: empty folders stand there, read-only, while the sandbox does. */
  absent: readonly string[]
  /** Not to be there after a command: removed, and told. */
  forbidden: readonly string[]
}

/** Where the commands of one session run (design §2). */
export interface Sandbox {
  command(options: CommandSpawnOptions): Promise<RunningCommand>
  /** What a command has made that must not be there; it is removed. */
  removePlanted(): string[]
  /** Lets one command reach hosts, by the variables that it gets; nothing where it has the machine's own network. */
  allow(hosts: AllowedHosts): Promise<{ env: Record<string, string>; revoke(): void }>
}

export interface Sandboxes {
  /** What works here; looked at anew where nothing did. */
  engine(): Promise<Engine>
  /**
   * The session's sandbox, made where there is none with these very terms: another one goes on until its commands are over.
   * @throws KikiError `sandbox_unavailable`.
   */
  open(session: string, terms: SandboxTerms): Promise<Sandbox>
  /** Whether a path is an empty folder that a sandbox made where nothing was. */
  isPlaceholder(path: string): boolean
  /** Ends a session's sandboxes with everything in them. */
  close(session: string): Promise<void>
  closeAll(): Promise<void>
}

export interface SandboxesDeps extends EngineDeps {
  children: ChildRecords
  network: SandboxNetwork
  /** For doors and temporary folders: in the home. */
  dir: string
  log: Log
  /** Of the launcher itself. */
  env: Record<string, string>
  launcher: readonly [string, ...string[]]
}

interface Open {
  terms: string
  processes: ConfinedProcesses
  forbidden: readonly string[]
  /** Commands in it. */
  running: number
  idle: NodeJS.Timeout | undefined
  /** Settles when it is gone and nothing of it is left in the workspace. */
  gone: Promise<void>
}

/** A sandbox in which nothing runs is closed after so long: it costs the memory of a small Node.js. */
const IDLE_MS = 300_000

export function createSandboxes(deps: SandboxesDeps): Sandboxes {
  const temporaries = join(deps.dir, 'tmp')
  // What an earlier host's sessions left.
  rmSync(temporaries, { recursive: true, force: true })
  const sessions = new Map<string, Open[]>()
  const opening = new Map<string, Promise<unknown>>()
  /** By path: how many sandboxes rest on it. */
  const placeholders = new Map<string, number>()
  let engine: Promise<Engine> | undefined

  /** Looked for anew where none worked. */
  async function find(): Promise<Engine> {
    engine ??= findEngine(deps)
    const looking = engine
    const found = await looking
    if (!('start' in found) && engine === looking) engine = undefined
    return found
  }

  async function usable(): Promise<Extract<Engine, { start: unknown }>> {
    const found = await find()
    if ('start' in found) return found
    throw noSandbox(found)
  }

  async function start(session: string, terms: SandboxTerms, key: string): Promise<Open> {
    const found = await usable()
    const { absent, forbidden, ...rest } = terms
    const temporary = join(temporaries, session)
    mkdirSync(temporary, { recursive: true, mode: 0o700 })
    const made = makePlaceholders(absent, placeholders)
    // What nobody sees needs no guard, and a guard would show it: Kiki's own home in the workspace, for one.
    const seen = (path: string) => !isHidden(path, rest)
    const confinement: Confinement = {
      ...rest,
      fixed: rest.fixed.filter(seen),
      frozen: [...rest.frozen, ...absent].filter(seen),
      temporary: realpathSync.native(temporary),
      programs: [deps.programFolder, realpathSync.native(process.execPath)],
    }
    const processes = await openConfined({
      ...{ dir: deps.dir, log: deps.log, env: deps.env },
      onTunnel: confinement.network ? undefined : deps.network.take,
      start: ({ folder }) => found.start(confinement, { argv: deps.launcher, env: deps.env, door: folder }),
    })
    const { record } = processes
    let forget: (() => void) | undefined
    const gone = processes.lost.then(() => {
      forget?.()
      const planted = forbidden.filter(removed)
      if (planted.length > 0) deps.log.warn({ session, planted }, 'what git would take settings from was removed')
      removePlaceholders(released(absent, placeholders))
      const left = (sessions.get(session) ?? []).filter((one) => one !== open)
      if (left.length > 0) sessions.set(session, left)
      else sessions.delete(session)
    })
    const open: Open = { terms: key, processes, forbidden, running: 0, idle: undefined, gone }
    gone.catch((error: unknown) => deps.log.error({ session, error: String(error) }, 'a sandbox left something behind'))
    sessions.set(session, [open, ...(sessions.get(session) ?? [])])
    try {
      if (record !== undefined) forget = await deps.children.add(record, made)
    } catch (error) {
      // Nothing may run in what the next host would not know of.
      processes.kill('its start could not be recorded')
      throw error
    }
    return open
  }

  function enter(open: Open): () => void {
    clearTimeout(open.idle)
    open.running += 1
    return () => {
      open.running -= 1
      if (open.running > 0) return
      open.idle = setTimeout(() => void open.processes.close(), IDLE_MS)
      open.idle.unref()
    }
  }

  function usedBy(open: Open): Sandbox {
    return {
      async command(options) {
        const leave = enter(open)
        try {
          const command = await open.processes.command(options)
          command.exited.then(leave, leave)
          return command
        } catch (error) {
          leave()
          throw error
        }
      },
      removePlanted: () => open.forbidden.filter(removed),
      allow: async (hosts) => deps.network.allow(hosts, await open.processes.tunnel),
    }
  }

  async function close(session: string): Promise<void> {
    const open = sessions.get(session) ?? []
    await Promise.all(
      open.map((one) => {
        one.processes.kill('its session ended')
        return one.gone
      }),
    )
    rmSync(join(temporaries, session), { recursive: true, force: true })
  }

  return {
    engine: find,
    async open(session, terms) {
      const key = canonicalJson(terms)
      // One after the other: two calls at once must not make two.
      const before = opening.get(session) ?? Promise.resolve()
      const mine = before.then(async () => {
        const there = (sessions.get(session) ?? []).find((one) => one.terms === key)
        return usedBy(there ?? (await start(session, terms, key)))
      })
      opening.set(
        session,
        mine.catch(() => undefined),
      )
      return mine
    },
    isPlaceholder: (path) => placeholders.has(path) && isEmptyFolder(path),
    close,
    async closeAll() {
      await Promise.all([...sessions.keys()].map(close))
    },
  }
}

/** The refusal of commands that must be confined and cannot be (SB-02). */
export function noSandbox({ problem, hint }: { problem: string; hint: string }): KikiError {
  return new KikiError('sandbox_unavailable', problem, {
    hint: `${hint} See \`kiki doctor\`.`,
    data: { setting: 'connection.sandbox' },
  })
}

/** @returns those that were made now. */
function makePlaceholders(paths: readonly string[], counts: Map<string, number>): string[] {
  const made: string[] = []
  for (const path of paths) {
    const known = counts.get(path) ?? 0
    counts.set(path, known + 1)
    if (known > 0 || lstatSync(path, { throwIfNoEntry: false }) !== undefined) continue
    mkdirSync(path, { mode: 0o755 })
    made.push(path)
  }
  return made
}

/** @returns those that no sandbox rests on any more. */
function released(paths: readonly string[], counts: Map<string, number>): string[] {
  return paths.filter((path) => {
    const left = (counts.get(path) ?? 1) - 1
    if (left > 0) counts.set(path, left)
    else counts.delete(path)
    return left <= 0
  })
}

function isEmptyFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true && readdirSync(path).length === 0
}

function removed(path: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false
  rmSync(path, { recursive: true, force: true })
  return true
}

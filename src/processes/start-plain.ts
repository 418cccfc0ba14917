import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { GRACE_MS } from './members.js'
import type { CommandSignal, FromLauncher, LeftOver, ToLauncher } from './protocol.js'

export type SpawnMessage = Extract<ToLauncher, { type: 'spawn' }>

/** Where the host's door is. */
export interface Place {
  closed: boolean
  address: string
  token: string
}

/** How the launcher hears of a child. */
export interface Reports {
  /** It was told to end before it could start. */
  ended(): boolean
  say(message: FromLauncher): void
  /** What is to be closed once the host has opened the child's pipes, also when the child has ended by then. */
  keepOpen(release: () => void): void
  fail(error: unknown): void
  exit(exitCode: number | null, signal: NodeJS.Signals | null, left?: LeftOver[]): void
}

/** What can be done with a child that exists. */
export interface Started {
  /** Lets a held child run its program. */
  go(): void
  signal(signal: CommandSignal): void
  /** Ends it and whatever belongs to it: SIGTERM, after a grace SIGKILL. */
  end(): void
  /** SIGKILL at once, for a launcher that is about to end. */
  kill(): void
}

/** Members of a group that are not our children give no notice when they end, so the group is looked at. */
const LOOK_MS = 10

/**
 * Holds a child between fork and exec: the shell waits for a word on descriptor 3 and then becomes the program, with the
 * same pid, group and start time. If the launcher dies, `read` meets the end of the file and nothing is executed.
 */
export const GATE = 'read -r word <&3 && [ "$word" = go ] && exec "$@" 3<&-'
/** Variables that a shell adds on its own; a child gets only what it was given. */
const SHELL_ADDS = ['PWD', 'OLDPWD', 'SHLVL']

/** Starts one child whose output goes straight to the host, in a group of its own that is ended as a whole. */
export async function startPlain(message: SpawnMessage, place: Place, on: Reports): Promise<Started> {
  const streams = await Promise.all([1, 2].map((n) => attach(place, message.id, n)))
  try {
    if (on.ended() || place.closed) throw endedEarly()
    const [file, ...args] = message.held ? gated(message) : message.argv
    const child = spawn(file, args, {
      cwd: message.cwd,
      env: message.env,
      // A session and process group of its own, so that the whole group can be ended.
      detached: true,
      stdio: ['ignore', streams[0], streams[1], ...(message.held ? ['pipe' as const] : [])],
    })
    return await follow(child, message.id, on)
  } finally {
    for (const stream of streams) stream?.destroy()
  }
}

export function endedEarly(): Error {
  return Object.assign(new Error('Ended before it started.'), { code: 'ECANCELED' })
}

/** The gate's command line. The program is looked up first, so that a missing one is told apart from its own failures. */
function gated(message: SpawnMessage): [string, ...string[]] {
  return ['/bin/sh', '-c', withoutExtras(message.env, GATE), 'sh', findProgram(message), ...message.argv.slice(1)]
}

/** A script whose program does not see what the shell adds to its environment. */
export function withoutExtras(env: Record<string, string>, script: string): string {
  const drop = SHELL_ADDS.filter((name) => env[name] === undefined).join(' ')
  return drop === '' ? script : `unset ${drop}; ${script}`
}

/** The file that a name stands for. @throws an error with the code `ENOENT`. */
export function findProgram({ argv: [name], env, cwd }: Pick<SpawnMessage, 'argv' | 'env' | 'cwd'>): string {
  const places = name.includes('/')
    ? [path.resolve(cwd, name)]
    : (env.PATH ?? '').split(':').map((dir) => path.resolve(cwd, dir || '.', name))
  const found = places.find((place) => isExecutable(place))
  if (found === undefined) throw Object.assign(new Error(`No program ${name}.`), { code: 'ENOENT' })
  return found
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    // Not there, or not for us: the search goes on, and ends with an error of its own.
    return false
  }
}

/** A connection to the host's door, announced; nothing is read from it here but where it is a terminal's. */
export function attach({ address, token }: Place, id: number, n: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: address })
    // Stays for good: once the child has its own copy, what becomes of this one does not matter.
    socket.on('error', reject)
    socket.write(`${token} ${id} ${n}\n`, (error) => {
      if (error === null || error === undefined) resolve(socket)
    })
  })
}

function follow(child: ChildProcess, id: number, on: Reports): Promise<Started> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      if (child.pid === undefined) reject(error)
    })
    const { pid } = child
    if (pid === undefined) return
    const gate = child.stdio[3]
    // A held child that is ended before `go` breaks this pipe; its exit tells.
    gate?.on('error', () => undefined)
    const state = { over: false, killed: false }
    child.once('exit', (exitCode, signal) => {
      state.over = true
      if (state.killed) on.exit(exitCode, signal)
      else endGroup(pid, () => on.exit(exitCode, signal))
    })
    on.say({ type: 'spawned', id, pid })
    resolve({
      go: () => {
        if (gate !== null && gate !== undefined && 'end' in gate) gate.end('go\n')
      },
      signal: (signal) => void (state.over || signalGroup(pid, signal)),
      end: () => endLeader(child, pid, state),
      kill: () => void signalGroup(pid, 'SIGKILL'),
    })
  })
}

/** Asks the group to end; once its leader exits, `follow` sees to the rest. */
function endLeader(child: ChildProcess, pid: number, state: { over: boolean; killed: boolean }): void {
  // After its leader's exit a group is already being ended, and the pid may soon be another's.
  if (state.over) return
  signalGroup(pid, 'SIGTERM')
  const timer = setTimeout(() => {
    state.killed = true
    signalGroup(pid, 'SIGKILL')
  }, GRACE_MS)
  child.once('exit', () => clearTimeout(timer))
}

/** Ends what is left of a group whose leader has exited, then calls `done`. */
function endGroup(pid: number, done: () => void): void {
  if (!signalGroup(pid, 'SIGTERM')) {
    done()
    return
  }
  const deadline = performance.now() + GRACE_MS
  const look = setInterval(() => {
    const late = performance.now() >= deadline
    if (signalGroup(pid, late ? 'SIGKILL' : 0) && !late) return
    clearInterval(look)
    done()
  }, LOOK_MS)
}

/** False where no process of the group is left. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    // ESRCH: nobody is left. EPERM cannot be changed from here either.
    return false
  }
}

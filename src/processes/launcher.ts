/**
 * The launcher: a small program that starts every child for the host, because spawning from a large process is slow
 * (design §2). It imports only Node's own modules, keeps nothing on disk, and when the host goes away, however it goes,
 * it kills every group that it started and ends.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import type { Writable } from 'node:stream'
import type { FromLauncher, ToLauncher } from './protocol.js'

/** How long a group may take to end by itself after SIGTERM; the whole must end within 2 s (SH-02). */
const GRACE_MS = 400
/** Members of a group that are not our children give no notice when they end, so the group is looked at. */
const LOOK_MS = 10

/**
 * Holds a child between fork and exec: the shell waits for a word on descriptor 3 and then becomes the program, with the
 * same pid, group and start time. If the launcher dies, `read` meets the end of the file and nothing is executed.
 */
const GATE = 'read -r word <&3 && [ "$word" = go ] && exec "$@" 3<&-'
/** Variables that a shell adds on its own; a child gets only what it was given. */
const SHELL_ADDS = ['PWD', 'OLDPWD', 'SHLVL']

interface Entry {
  process?: ChildProcess
  ending: boolean
  /** SIGKILL went to the whole group: nothing of it can live on. */
  killed: boolean
}

interface Reports {
  say(message: FromLauncher): void
  fail(error: unknown): void
  ended(exitCode: number | null, signal: NodeJS.Signals | null): void
}

type Spawn = Extract<ToLauncher, { type: 'spawn' }>

function startLauncher(input: NodeJS.ReadStream, output: Writable): void {
  const entries = new Map<number, Entry>()
  const state = { closed: false, address: '', token: '' }
  const say = (message: FromLauncher): void => void output.write(`${JSON.stringify(message)}\n`)

  const close = (): void => {
    state.closed = true
    for (const entry of entries.values()) signalGroup(entry.process?.pid, 'SIGKILL')
    input.destroy()
  }

  const handle = (message: ToLauncher): void => {
    if (message.type === 'hello') return void Object.assign(state, { address: message.address, token: message.token })
    if (message.type === 'spawn') {
      const entry: Entry = { ending: false, killed: false }
      entries.set(message.id, entry)
      const fail = (error: unknown): void => {
        entries.delete(message.id)
        say({ type: 'failed', id: message.id, ...describe(error, message.cwd) })
      }
      const ended = (exitCode: number | null, signal: NodeJS.Signals | null): void => {
        entries.delete(message.id)
        say({ type: 'exit', id: message.id, exitCode, signal })
      }
      startChild(message, entry, state, { say, fail, ended }).catch(fail)
      return
    }
    const entry = entries.get(message.id)
    if (entry === undefined) return
    if (message.type === 'go') openGate(entry)
    else endEntry(entry)
  }

  readLines(input, (line) => handle(JSON.parse(line) as ToLauncher))
  input.once('end', close)
  input.once('error', close)
  // The host is gone; `close` runs through the end of the input, and there is nobody to tell.
  output.on('error', close)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, close)
}

/** Starts one child whose output goes straight to the host. */
async function startChild(
  message: Spawn,
  entry: Entry,
  state: { closed: boolean; address: string; token: string },
  on: Reports,
): Promise<void> {
  const streams = await Promise.all([1, 2].map((n) => attach(state.address, `${state.token} ${message.id} ${n}\n`)))
  try {
    if (entry.ending || state.closed) throw Object.assign(new Error('Ended before it started.'), { code: 'ECANCELED' })
    const [file, ...args] = message.held ? gated(message) : message.argv
    const child = spawn(file, args, {
      cwd: message.cwd,
      env: message.env,
      // A session and process group of its own, so that the whole group can be ended.
      detached: true,
      stdio: ['ignore', streams[0], streams[1], ...(message.held ? ['pipe' as const] : [])],
    })
    entry.process = child
    follow(entry, child, message.id, on)
  } finally {
    for (const stream of streams) stream.destroy()
  }
}

/** The gate's command line. The program is looked up first, so that a missing one is told apart from its own failures. */
function gated(message: Spawn): [string, ...string[]] {
  const program = findProgram(message.argv[0], message.env.PATH ?? '', message.cwd)
  const drop = SHELL_ADDS.filter((name) => message.env[name] === undefined).join(' ')
  const script = drop === '' ? GATE : `unset ${drop}; ${GATE}`
  return ['/bin/sh', '-c', script, 'sh', program, ...message.argv.slice(1)]
}

function findProgram(name: string, searchPath: string, cwd: string): string {
  const places = name.includes('/')
    ? [path.resolve(cwd, name)]
    : searchPath.split(':').map((dir) => path.resolve(cwd, dir || '.', name))
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

/** A connection to the host's door, announced; nothing is read from it here, for it becomes the child's. */
function attach(address: string, header: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: address })
    // Stays for good: once the child has its own copy, what becomes of this one does not matter.
    socket.on('error', reject)
    socket.write(header, (error) => {
      if (error === null || error === undefined) resolve(socket)
    })
  })
}

function follow(entry: Entry, child: ChildProcess, id: number, on: Reports): void {
  child.once('error', (error) => {
    if (child.pid === undefined) on.fail(error)
  })
  const pid = child.pid
  if (pid === undefined) return
  // A held child that is ended before `go` breaks this pipe; its exit tells.
  child.stdio[3]?.on('error', () => undefined)
  on.say({ type: 'spawned', id, pid })
  child.once('exit', (exitCode, signal) => {
    if (entry.killed) on.ended(exitCode, signal)
    else endGroup(pid, () => on.ended(exitCode, signal))
  })
}

function openGate(entry: Entry): void {
  const gate = entry.process?.stdio[3]
  if (gate !== null && gate !== undefined && 'end' in gate) gate.end('go\n')
}

/** Asks the group to end; once its leader exits, `follow` sees to the rest. */
function endEntry(entry: Entry): void {
  if (entry.ending) return
  entry.ending = true
  const child = entry.process
  // After its leader's exit a group is already being ended, and the pid may soon be another's.
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const pid = child.pid
  signalGroup(pid, 'SIGTERM')
  const timer = setTimeout(() => {
    entry.killed = true
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
function signalGroup(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    // ESRCH: nobody is left. EPERM cannot be changed from here either.
    return false
  }
}

function describe(error: unknown, cwd: string): { code: string; message: string } {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
  const message = error instanceof Error ? error.message : String(error)
  return code === 'ENOENT' && !existsSync(cwd) ? { code: 'ENOCWD', message } : { code, message }
}

/** Not `node:readline`: it also splits at U+2028, which JSON leaves as it is. */
function readLines(input: NodeJS.ReadStream, onLine: (line: string) => void): void {
  let parts: string[] = []
  input.setEncoding('utf8')
  input.on('data', (chunk: string) => {
    const lines = chunk.split('\n')
    parts.push(lines.shift() ?? '')
    for (const next of lines) {
      const line = parts.join('')
      parts = [next]
      onLine(line)
    }
  })
}

startLauncher(process.stdin, process.stdout)

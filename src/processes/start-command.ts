import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { endAll, killAllNow, leftOf, signalAll, type Target } from './members.js'
import type { Pipes } from './pipes.js'
import type { LeftOver } from './protocol.js'
import {
  endedEarly,
  findProgram,
  GATE,
  type Place,
  type Reports,
  type SpawnMessage,
  type Started,
  withoutExtras,
} from './start-plain.js'
import { startTerminal } from './start-terminal.js'

/** How often what was kept is looked at (`background: true`). */
const WATCH_MS = 200

/** Sets the mark, then becomes the program (members.ts). Only bash can set this limit. */
const MARK = 'ulimit -x "$1" 2>/dev/null; shift; '
/** Before a script, on its first line, so that its lines keep their numbers. */
const WAIT = 'read -r KIKI_GATE <&3 && [ "$KIKI_GATE" = go ] || exit 125; unset KIKI_GATE; exec 3<&-; '

/** Starts a command, by pipes or in a terminal. */
export function startCommand(message: SpawnMessage, place: Place, pipes: Pipes, on: Reports): Promise<Started> {
  const { terminal } = message.command ?? {}
  return terminal === undefined
    ? startPiped(message, place, pipes, on)
    : startTerminal(message, terminal, place, pipes, on)
}

async function startPiped(message: SpawnMessage, place: Place, pipes: Pipes, on: Reports): Promise<Started> {
  const output = await pipes.take()
  const input = message.command?.input === true ? await pipes.take() : undefined
  if (on.ended() || place.closed) throw endedEarly()
  const mark = pipes.mark()
  // Open for both, a named pipe never blocks its opener: what the child has then opens at once, and the pipe lives until
  // the host has it too, however soon the child ends.
  const kept = [openSync(output, 'r+'), ...(input === undefined ? [] : [openSync(input, 'r+')])]
  const toChild = [openSync(output, constants.O_WRONLY), ...(input === undefined ? [] : [openSync(input, 'r')])]
  const release = closeOnce(kept)
  try {
    const [file, ...words] = piped(message, mark)
    const child = spawn(file, words, {
      cwd: message.cwd,
      env: message.env,
      detached: true,
      stdio: [toChild[1] ?? 'ignore', toChild[0], toChild[0], ...(message.held ? ['pipe' as const] : [])],
    })
    const target = await begun(child, mark)
    on.keepOpen(release)
    on.say({ type: 'spawned', id: message.id, ...named(target), ...pipesNamed(output, input) })
    const ends = watchEnd(message, target, on)
    child.once('exit', (exitCode, signal) => ends.over(exitCode, signal))
    child.stdio[3]?.on('error', () => undefined)
    return { ...ends, go: () => openGate(child) }
  } catch (error) {
    release()
    throw error
  } finally {
    for (const fd of toChild) closeSync(fd)
  }
}

function piped(message: SpawnMessage, mark: number | undefined): [string, ...string[]] {
  if (message.command?.script !== true) {
    return ['bash', ...gateWords(message, mark, message.held ? GATE : 'exec "$@"')]
  }
  const marks = mark === undefined ? '' : `ulimit -x ${mark} 2>/dev/null; `
  const script = `${marks}${message.held ? WAIT : ''}${message.argv.at(-1) ?? ''}`
  return [findProgram(message), ...message.argv.slice(1, -1), script]
}

/** The words of a bash that marks itself, waits at its gate and becomes the program. */
export function gateWords(message: SpawnMessage, mark: number | undefined, gate: string): string[] {
  const script = withoutExtras(message.env, `${MARK}${gate}`)
  const program = [findProgram(message), ...message.argv.slice(1)]
  return ['--noprofile', '--norc', '-c', script, 'bash', mark === undefined ? 'unlimited' : String(mark), ...program]
}

/** What the launcher can do to a command, and what it does when the command's program ends. */
export function watchEnd(
  { id, command }: SpawnMessage,
  target: Target,
  on: Reports,
): Pick<Started, 'signal' | 'end' | 'kill'> & { over(exitCode: number | null, signal: NodeJS.Signals | null): void } {
  let exit: { exitCode: number | null; signal: NodeJS.Signals | null } | undefined
  let ending: Promise<boolean> | undefined
  let watch: NodeJS.Timeout | undefined
  const tell = (left?: LeftOver[]): void => {
    clearInterval(watch)
    if (exit !== undefined) on.exit(exit.exitCode, exit.signal, left)
    exit = undefined
  }
  /** What could not be ended is not told as ended: the host has other means, and takes them. */
  const endThenTell = async (left?: LeftOver[]): Promise<void> => {
    ending ??= endAll(target)
    if (await ending) tell(left)
  }
  return {
    over(exitCode, signal) {
      target.over = true
      exit = { exitCode, signal }
      const left = ending === undefined ? leftOf(target) : []
      if (ending !== undefined) void endThenTell()
      else if (left.length === 0) tell()
      else if (command?.keep !== true) void endThenTell(left)
      else {
        on.say({ type: 'left', id, exitCode, signal })
        watch = setInterval(() => leftOf(target).length === 0 && tell(), WATCH_MS)
      }
    },
    signal: (signal) => void signalAll(target, signal),
    end: () => void endThenTell(),
    kill: () => killAllNow(target),
  }
}

export function named({ pid, mark }: Target): { pid: number; mark?: number } {
  return mark === undefined ? { pid } : { pid, mark }
}

/** The last two components: the host knows its own way to the folder. */
function pipesNamed(output: string, input: string | undefined): { output: string; input?: string } {
  const name = (path: string) => join(basename(dirname(path)), basename(path))
  return input === undefined ? { output: name(output) } : { output: name(output), input: name(input) }
}

function begun(child: ChildProcess, mark: number | undefined): Promise<Target> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    if (child.pid !== undefined) resolve({ pid: child.pid, mark, over: false })
  })
}

function openGate(child: ChildProcess): void {
  const gate = child.stdio[3]
  if (gate !== null && gate !== undefined && 'end' in gate) gate.end('go\n')
}

function closeOnce(fds: number[]): () => void {
  return () => {
    for (const fd of fds.splice(0)) closeSync(fd)
  }
}

import type { Socket } from 'node:net'
import { type Deferred, deferred } from '../lib/async.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { cancelled, cannotStart, notSeenToEnd } from './failures.js'
import type { Link } from './link.js'
import type { FromLauncher } from './protocol.js'
import { endIfSame, type StartRecord, startTimeOf } from './start-record.js'

export interface SpawnOptions {
  /** Program and arguments; never a shell string. */
  argv: readonly [string, ...string[]]
  cwd: string
  /** The child's whole environment; default: the allow-list (GU-61). */
  env?: Record<string, string>
  /** Aborting ends the whole process group within 2 s, also while the child is held. */
  signal: AbortSignal
  /**
   * The gate (GU-02): the child exists, with the pid, group and start time of this record, but the program is executed only
   * once this settled. Where it throws, where the host dies or where the signal aborts first, it never is.
   */
  beforeExec?(record: StartRecord): void | Promise<void>
}

export interface ExitResult {
  /** Null when a signal ended it. */
  exitCode: number | null
  signal: NodeJS.Signals | null
}

/** A started child. */
export interface Child {
  /** Also the number of its process group. */
  pid: number
  /** Undefined where the child ended before it could be read. */
  startTime: string | undefined
  /** Both are paused until `resume()` and end when no process holds them any more. */
  stdout: Socket
  stderr: Socket
  /** Ends the whole group: SIGTERM, after 0.4 s SIGKILL. */
  end(): void
  /**
   * Settles when nothing of the group is left.
   * @throws KikiError `internal_error` where the launcher died (the group was ended), `cancelled` where Kiki stops,
   * `outcome_unknown` where it was killed but not seen to end.
   */
  exited: Promise<ExitResult>
}

/** When the launcher did not report an end, the host kills the group itself; together within 2 s (SH-02). */
const OVERDUE_MS = 1200
const LAST_LOOK_MS = 300

interface Life {
  started: Deferred<number>
  exited: Deferred<ExitResult>
  pid: number | undefined
  startTime: string | undefined
  ending: NodeJS.Timeout | undefined
}

/** Starts one child through the launcher. @throws as `Processes.spawn` says. */
export async function spawnChild(
  link: Link,
  id: number,
  defaultEnv: Record<string, string>,
  options: SpawnOptions,
): Promise<Child> {
  const life: Life = {
    started: deferred(),
    exited: deferred(),
    pid: undefined,
    startTime: undefined,
    ending: undefined,
  }
  const streams = Promise.all([link.door.expect(id, 1), link.door.expect(id, 2)]).catch(async (error: unknown) => {
    // The door closes with the launcher; why that ended is what counts.
    await life.exited.promise
    throw error
  })
  // Each has its own reader below; a rejection that comes before is no unhandled one.
  for (const promise of [streams, life.exited.promise, life.started.promise]) promise.catch(() => undefined)

  const end = (): void => endChild(link, id, life)
  options.signal.addEventListener('abort', end, { once: true })
  const forget = (): void => {
    options.signal.removeEventListener('abort', end)
    clearTimeout(life.ending)
    link.children.delete(id)
  }
  life.exited.promise.then(forget, forget)
  link.children.set(id, {
    onMessage: (message) => onMessage(life, message, options),
    onLost: (why) => onLost(life, why),
  })
  const held = options.beforeExec !== undefined
  link.send({ type: 'spawn', id, argv: options.argv, cwd: options.cwd, env: options.env ?? defaultEnv, held })
  if (options.signal.aborted) end()

  try {
    const pid = await life.started.promise
    if (options.beforeExec !== undefined) {
      await passGate(options, life, pid)
      link.send({ type: 'go', id })
    }
    const [stdout, stderr] = await streams
    return { pid, startTime: life.startTime, stdout, stderr, end, exited: life.exited.promise }
  } catch (error) {
    end()
    await life.exited.promise.catch(() => undefined)
    // Not where it started: its connections may come after the news that it ended.
    link.door.forget(id)
    void streams.then(
      (open) => open.map((stream) => stream.destroy()),
      () => undefined,
    )
    throw error
  }
}

async function passGate(options: SpawnOptions, life: Life, pid: number): Promise<void> {
  if (life.startTime === undefined) {
    throw new KikiError('internal_error', `The start time of process ${pid} cannot be read, so it was not let run.`, {
      hint: 'Held commands need /proc; they work on Linux only.',
    })
  }
  await options.beforeExec?.({ pid, startTime: life.startTime })
  if (options.signal.aborted) throw cancelled()
}

function onMessage(life: Life, message: FromLauncher, options: SpawnOptions): void {
  if (message.type === 'spawned') {
    life.pid = message.pid
    begin(life, message.pid)
  } else if (message.type === 'exit') {
    life.exited.resolve({ exitCode: message.exitCode, signal: message.signal })
  } else {
    const error = cannotStart(message.code, message.message, options.argv[0], options.cwd)
    life.started.reject(error)
    life.exited.reject(error)
  }
}

/** Where the system cannot even tell what was started (too many open files), the child is ended again, and the host lives. */
function begin(life: Life, pid: number): void {
  try {
    life.startTime = startTimeOf(pid)
    life.started.resolve(pid)
  } catch (error) {
    life.started.reject(
      new KikiError('internal_error', `What was started could not be identified (${messageOf(error)}); it was ended.`, {
        hint: 'Wait for other operations to end, then repeat the call.',
        cause: error,
      }),
    )
  }
}

/** The launcher cannot end this child any more, so the host does, if it is still the same (GU-05). */
function onLost(life: Life, why: KikiError): void {
  try {
    killRecorded(life)
    life.started.reject(why)
    life.exited.reject(why)
  } catch (error) {
    const unknown = new KikiError(
      'outcome_unknown',
      `${why.message} Its child could not be ended: ${messageOf(error)}.`,
      {
        hint: 'Look for it with ps before repeating the call.',
        cause: error,
      },
    )
    life.started.reject(unknown)
    life.exited.reject(unknown)
  }
}

function endChild(link: Link, id: number, life: Life): void {
  if (life.ending !== undefined || !link.children.has(id)) return
  link.send({ type: 'end', id })
  life.ending = setTimeout(() => {
    try {
      killRecorded(life)
    } catch (error) {
      life.started.reject(error)
      life.exited.reject(notSeenToEnd(life.pid ?? 0))
    }
    life.ending = setTimeout(() => {
      const error = notSeenToEnd(life.pid ?? 0)
      life.started.reject(error)
      life.exited.reject(error)
    }, LAST_LOOK_MS)
  }, OVERDUE_MS)
}

function killRecorded(life: Life): void {
  if (life.pid !== undefined && life.startTime !== undefined) endIfSame({ pid: life.pid, startTime: life.startTime })
}

import { type Deferred, deferred } from '../lib/async.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { cancelled, cannotStart, notSeenToEnd } from './failures.js'
import type { Link } from './link.js'
import type { ChildMessage, LeftOver, ToLauncher } from './protocol.js'
import { endIfSame, type StartRecord, startTimeOf } from './start-record.js'

/** What every start through the launcher needs. */
export interface StartOptions {
  /** Program and arguments; never a shell string. */
  argv: readonly [string, ...string[]]
  cwd: string
  /** The child's whole environment; default: the allow-list (GU-61). */
  env?: Record<string, string>
  /** Aborting ends whatever belongs to the child within 2 s, also while it is held. */
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

export interface Ended extends ExitResult {
  /** What outlived the program and was ended after it. */
  left: readonly LeftOver[]
}

/** When the launcher did not report an end, the host sees to it itself; together within 2 s (SH-02). */
const OVERDUE_MS = 1200
const LAST_LOOK_MS = 300

type Spawned = Extract<ChildMessage, { type: 'spawned' }>

interface Life {
  started: Deferred<number>
  exited: Deferred<Ended>
  record: StartRecord | undefined
  ending: NodeJS.Timeout | undefined
}

/** A child that has begun, with the streams to it. */
export interface Begun<S> {
  pid: number
  startTime: string | undefined
  streams: S
  end(): void
  exited: Promise<Ended>
}

/** How the streams to a child come about. */
export interface Connecting<S> {
  streams: Promise<S>
  onSpawned?(message: Spawned): void
  onLeft?(exit: ExitResult): void
}

/**
 * Starts one child through the launcher, with everything that can go wrong between a start and an end.
 * @throws as `Processes.spawn` says.
 */
export async function beginLife<S extends { destroy(): void }>(
  link: Link,
  spawn: Extract<ToLauncher, { type: 'spawn' }>,
  options: StartOptions,
  connecting: Connecting<S>,
): Promise<Begun<S>> {
  const { id } = spawn
  const life: Life = { started: deferred(), exited: deferred(), record: undefined, ending: undefined }
  const streams = connecting.streams.catch(async (error: unknown) => {
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
    onMessage: (message) => onMessage(life, message, { link, options, connecting }),
    onLost: (why) => onLost(life, why),
  })
  link.send(spawn)
  if (options.signal.aborted) end()

  try {
    const pid = await life.started.promise
    if (options.beforeExec !== undefined) {
      await passGate(options, life, pid)
      link.send({ type: 'go', id })
    }
    const begun = { pid, startTime: life.record?.startTime, streams: await streams, end, exited: life.exited.promise }
    return begun
  } catch (error) {
    end()
    await life.exited.promise.catch(() => undefined)
    // Not where it started: its connections may come after the news that it ended.
    link.door.forget(id)
    void streams.then(
      (open) => open.destroy(),
      () => undefined,
    )
    throw error
  }
}

async function passGate(options: StartOptions, life: Life, pid: number): Promise<void> {
  if (life.record === undefined) {
    throw new KikiError('internal_error', `The start time of process ${pid} cannot be read, so it was not let run.`, {
      hint: 'Held commands need /proc; they work on Linux only.',
    })
  }
  await options.beforeExec?.(life.record)
  if (options.signal.aborted) throw cancelled()
}

interface Hearing {
  link: Link
  options: StartOptions
  connecting: Pick<Connecting<unknown>, 'onSpawned' | 'onLeft'>
}

function onMessage(life: Life, message: ChildMessage, { link, options, connecting }: Hearing): void {
  switch (message.type) {
    case 'spawned':
      connecting.onSpawned?.(message)
      begin(life, message, link)
      break
    case 'left':
      connecting.onLeft?.({ exitCode: message.exitCode, signal: message.signal })
      break
    case 'exit':
      life.exited.resolve({ exitCode: message.exitCode, signal: message.signal, left: message.left ?? [] })
      break
    case 'failed': {
      const error = cannotStart(message.code, message.message, options.argv[0], options.cwd)
      life.started.reject(error)
      life.exited.reject(error)
    }
  }
}

/** Where the system cannot even tell what was started (too many open files), the child is ended again, and the host lives. */
function begin(life: Life, { pid, mark }: Spawned, link: Link): void {
  try {
    // The numbers of a confined child are those of its own world: here they would be another's.
    const startTime = link.confined ? undefined : startTimeOf(pid)
    if (startTime !== undefined) life.record = mark === undefined ? { pid, startTime } : { pid, startTime, mark }
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
    // All that is confined with it ends too, for certain: that is told by the link's end.
    if (link.confined) return link.kill('a command in it could not be ended otherwise')
    try {
      killRecorded(life)
    } catch (error) {
      life.started.reject(error)
      life.exited.reject(notSeenToEnd(life.record?.pid ?? 0))
    }
    life.ending = setTimeout(() => {
      const error = notSeenToEnd(life.record?.pid ?? 0)
      life.started.reject(error)
      life.exited.reject(error)
    }, LAST_LOOK_MS)
  }, OVERDUE_MS)
}

function killRecorded(life: Life): void {
  if (life.record !== undefined) endIfSame(life.record)
}

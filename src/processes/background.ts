import { settledWithin } from '../lib/async.js'
import type { Clock } from '../lib/clock.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { Log } from '../lib/log.js'
import type { ProcessRow, ProcessStatus } from '../store/processes.js'
import type { Store } from '../store/store.js'
import type { CommandSignal, RunningCommand } from './command.js'
import type { Outputs } from './output/outputs.js'
import { type GrowingOutput, type OutputPage, pageFrom } from './output/saved.js'
import type { OutputWriter } from './output/writer.js'

/** Commands in the background: they outlive the call that started them, not their session (SH-03). */
export interface Background {
  /** Takes over a command that runs. */
  add(of: NewProcess, command: RunningCommand, output: OutputWriter): ProcessRow
  /** Newest first. */
  list(session: string): ProcessRow[]
  /** Of every session, newest first. */
  all(filter: { session?: string | undefined; connection?: string | undefined; limit: number }): ProcessRow[]
  get(id: string): ProcessRow | undefined
  /** @throws KikiError `not_found`, also for one of another session. */
  require(session: string, id: string): ProcessRow
  /** What came since a byte, once there is something, it is over or the time is up. */
  read(row: ProcessRow, options: { cursor: number; limit: number; waitMs: number; signal: AbortSignal }): Promise<Read>
  /** Bytes that it has written. */
  bytes(row: ProcessRow): number
  /** @throws KikiError `conflict` where it is over or takes no input. */
  input(row: ProcessRow, text: string): Promise<void>
  /** @throws KikiError `conflict` where it is over. */
  signal(row: ProcessRow, signal: CommandSignal): void
  /** Ends those that it is true of, with all that belongs to them, and waits until they are over. @returns how many. */
  end(which: (row: ProcessRow) => boolean): Promise<number>
  running(): ProcessRow[]
}

export type NewProcess = Pick<
  ProcessRow,
  'operation_id' | 'connection_id' | 'session_ref' | 'policy_version' | 'command' | 'cwd'
>

export interface Read extends OutputPage {
  row: ProcessRow
  bytes: number
}

interface Running {
  row: ProcessRow
  command: RunningCommand
  output: OutputWriter
  /** Settles at the next output, or at the end. */
  next: Promise<void>
  told(): void
  ending: boolean
  over: Promise<void>
}

/** Ctrl-D: at the end of a text it closes an input that is no terminal. */
export const END_OF_INPUT = '\u0004'
/** Processes that one session is shown. */
const SHOWN = 50
/** How long output may stay open after all has ended: only what is not seen can hold it. */
const DRAIN_MS = 500

export function createBackground(deps: { store: Store; outputs: Outputs; clock: Clock; log: Log }): Background {
  const { store, outputs, clock, log } = deps
  const lives = new Map<string, Running>()

  function rearm(running: Running): void {
    running.next = new Promise((resolve) => {
      running.told = resolve
    })
  }

  async function watch(running: Running): Promise<void> {
    const { row, command, output } = running
    const closed = new Promise<void>((resolve) => command.output.once('close', () => resolve()))
    command.output.on('data', (chunk: Buffer) => {
      output.push(chunk)
      running.told()
      rearm(running)
    })
    command.output.resume()
    const ended = await command.exited.catch((error: unknown) => {
      log.warn({ process: row.id, error: messageOf(error) }, 'a background process was not seen to end by itself')
      return undefined
    })
    await settledWithin(closed, DRAIN_MS)
    command.output.destroy()
    command.input?.destroy()
    output.end()
    const status: ProcessStatus = ended === undefined || running.ending ? 'ended' : 'exited'
    const end = {
      ...{ id: row.id, status, ended_at: clock.now() },
      exit_code: ended?.exitCode ?? null,
      signal: ended?.signal ?? null,
    }
    await store.commits.vital(() => store.processes.end(end))
    Object.assign(row, end)
    lives.delete(row.id)
    running.told()
  }

  function alive(row: ProcessRow): Running {
    const running = lives.get(row.id)
    if (running !== undefined) return running
    throw new KikiError('conflict', `Process ${row.id} is over: ${endWords(require(row.session_ref, row.id))}.`, {
      hint: 'Read what it wrote with ProcessOutput, or start another with Bash.',
    })
  }

  const get = (id: string): ProcessRow | undefined => lives.get(id)?.row ?? store.processes.get(id)

  function require(session: string, id: string): ProcessRow {
    const row = get(id)
    if (row?.session_ref === session) return row
    throw new KikiError('not_found', `There is no process ${id} in this session.`, {
      hint: 'List them: ProcessOutput without a process_id.',
    })
  }

  function all({ session, connection, limit }: Parameters<Background['all']>[0]): ProcessRow[] {
    store.commits.flush()
    return store.processes
      .list({ session: session ?? null, connection: connection ?? null, limit })
      .map((row) => lives.get(row.id)?.row ?? row)
  }

  function growing(row: ProcessRow): GrowingOutput {
    return lives.get(row.id)?.output ?? outputs.growing(row.operation_id)
  }

  return {
    add(of, command, output) {
      output.save()
      const row: ProcessRow = {
        ...of,
        id: newId('proc', clock.now()),
        ...{ started_at: clock.now(), ended_at: null, status: 'running', exit_code: null, signal: null },
      }
      // Its operation's own commit follows at once, and makes this durable too.
      store.commits.lazy(() => store.processes.insert(row))
      const running: Running = {
        ...{ row, command, output, ending: false, next: Promise.resolve(), told: () => undefined },
        over: Promise.resolve(),
      }
      rearm(running)
      lives.set(row.id, running)
      running.over = watch(running).catch((error: unknown) =>
        log.error(
          { process: row.id, error: messageOf(error) },
          'the end of a background process could not be recorded',
        ),
      )
      return row
    },
    list: (session) => all({ session, limit: SHOWN }),
    all,
    get,
    require,
    async read(row, { cursor, limit, waitMs, signal }) {
      const running = lives.get(row.id)
      let from = cursor
      if (running !== undefined && cursor >= running.output.bytes) {
        from = Math.min(cursor, running.output.bytes)
        await settledWithin(running.next, waitMs, signal)
      }
      const now = require(row.session_ref, row.id)
      const source = growing(now)
      const page = pageFrom(source, from, limit, now.status !== 'running')
      return { ...page, row: now, bytes: source.bytes }
    },
    bytes: (row) => growing(row).bytes,
    async input(row, text) {
      const { command } = alive(row)
      const { input } = command
      if (input === undefined || input.destroyed || input.writableEnded) {
        throw new KikiError('conflict', `The input of process ${row.id} is closed.`, {
          hint: 'Start the command again to talk to it.',
        })
      }
      if (input.writableLength > MAX_UNREAD) {
        throw new KikiError(
          'conflict',
          `Process ${row.id} does not read its input: ${input.writableLength} bytes wait there.`,
          {
            hint: 'See what it does with ProcessOutput, or end it with a signal.',
          },
        )
      }
      const closes = text.endsWith(END_OF_INPUT) && input !== command.output
      const typed = closes ? text.slice(0, -1) : text
      if (typed !== '') await written(input, typed)
      if (closes) input.end()
    },
    signal(row, signal) {
      const running = alive(row)
      if (signal === 'SIGKILL') running.command.end()
      else running.command.signal(signal)
    },
    async end(which) {
      const ending = [...lives.values()].filter(({ row }) => which(row))
      for (const running of ending) {
        running.ending = true
        running.command.end()
      }
      await Promise.all(ending.map(({ over }) => over))
      return ending.length
    },
    running: () => [...lives.values()].map(({ row }) => row),
  }
}

/** How a process is, or how it ended, in words. */
export function endWords({ status, exit_code, signal }: ProcessRow): string {
  switch (status) {
    case 'running':
      return 'running'
    case 'exited':
      return signal === null ? `exited with code ${exit_code}` : `ended by ${signal}`
    case 'ended':
      return 'ended by Kiki'
    case 'lost':
      return "ended when Kiki's host was"
  }
}

/** Bytes that may wait for a process that does not read. */
const MAX_UNREAD = 256 * 1024
/** Milliseconds that a process may take to read what it is sent. */
const INPUT_MS = 5000

async function written(input: NonNullable<RunningCommand['input']>, text: string): Promise<void> {
  const done = new Promise<void>((resolve, reject) => {
    input.write(text, (error) => (error === null || error === undefined ? resolve() : reject(error)))
  })
  done.catch(() => undefined)
  if (!(await settledWithin(done, INPUT_MS))) {
    throw new KikiError('timeout', 'The process does not read its input: part of the text may wait there.', {
      hint: 'See what it does with ProcessOutput.',
    })
  }
  await done.catch((error: unknown) => {
    throw new KikiError('conflict', `The process did not take its input (${messageOf(error)}).`, {
      hint: 'See with ProcessOutput whether it has ended.',
      cause: error,
    })
  })
}

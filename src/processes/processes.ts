import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { settledWithin } from '../lib/async.js'
import type { Log } from '../lib/log.js'
import { type Child, type SpawnOptions, spawnChild } from './children.js'
import { type CommandSpawnOptions, type RunningCommand, spawnCommand } from './command.js'
import { allowedEnvironment } from './environment.js'
import { cancelled, stopping } from './failures.js'
import { type Link, openLink } from './link.js'

export type { Child, ExitResult, SpawnOptions } from './children.js'

export interface RunOptions {
  /** Program and arguments; never a shell string. */
  argv: readonly [string, ...string[]]
  cwd: string
  /** The child's whole environment; default: the allow-list (GU-61). */
  env?: Record<string, string>
  /** Aborting ends the whole process group, for certain, within 2 s. */
  signal: AbortSignal
  /** Called for each chunk of standard output, in order. Return false to end the child: enough was seen. */
  onStdout(chunk: Buffer): boolean | undefined
}

export interface RunResult {
  /** Null when a signal ended it. */
  exitCode: number | null
  signal: NodeJS.Signals | null
  /** The first 64 KiB of standard error. */
  stderr: string
  /** True when `onStdout` asked to stop. */
  stopped: boolean
}

/** Starts children through the launcher (design §2); none outlives it. */
export interface Processes {
  /**
   * Runs a program to its end; nothing of its process group is left when this settles.
   * @throws KikiError `not_found` where the program or `cwd` is missing, `cancelled` where the signal was aborted,
   * `outcome_unknown` where an aborted child was not seen to end, `internal_error` where the launcher died.
   */
  run(options: RunOptions): Promise<RunResult>
  /** Ends every child and the launcher. */
  close(): Promise<void>
}

/** What commands need beyond {@link Processes.run}. */
export interface ChildProcesses extends Processes {
  /**
   * Starts a program and hands over its output while it runs. With `beforeExec` it is held until that settles (GU-02).
   * @throws as {@link Processes.run}, and what `beforeExec` throws.
   */
  spawn(options: SpawnOptions): Promise<Child>
  /** Starts a command with the owner's own rights, beside no other. @throws as {@link spawn}. */
  command(options: CommandSpawnOptions): Promise<RunningCommand>
}

export interface ProcessesOptions {
  /** A folder for the private socket folder of each launcher; made (0700) where missing. */
  dir: string
  log: Log
  /** The host's environment as `config/` read it; children get the allow-listed part. */
  env: Readonly<Record<string, string | undefined>>
  /** The compiled launcher; default: the one beside this file. */
  launcherPath?: string
}

/** Standard error that is kept, in bytes (GU-61). */
const STDERR_BYTES = 64 * 1024
/** How long output may stay open after the whole group ended: only a process that left its group can hold it. */
const DRAIN_MS = 500

/** The launcher needs little memory, and must not take more. */
export function launcherCommand(launcherPath: string): readonly [string, ...string[]] {
  return [process.execPath, '--max-old-space-size=64', launcherPath]
}

/** The compiled launcher beside this file. */
export function launcherFile(): string {
  return fileURLToPath(new URL('./launcher.js', import.meta.url))
}

/** Nothing is started before the first run. After a launcher died, the next run starts a new one. */
export function createProcesses(options: ProcessesOptions): ChildProcesses {
  const env = allowedEnvironment(options.env)
  const launcherPath = options.launcherPath ?? launcherFile()
  let link: Promise<Link> | undefined
  let closed = false
  let lastId = 0

  const currentLink = (): Promise<Link> => {
    const start = ({ address }: { address: string }) => ({ argv: launcherCommand(launcherPath), env, address })
    link ??= openLink({ dir: options.dir, log: options.log, confined: false, start }).then((opened) => {
      void opened.lost.then(() => {
        link = undefined
      })
      return opened
    })
    return link
  }
  const openFor = async (signal: AbortSignal): Promise<Link> => {
    if (closed) throw stopping()
    if (signal.aborted) throw cancelled()
    return currentLink().catch((error: unknown) => {
      link = undefined
      throw error
    })
  }
  const spawn = async (child: SpawnOptions): Promise<Child> => {
    const opened = await openFor(child.signal)
    lastId += 1
    return spawnChild(opened, lastId, env, child)
  }
  return {
    spawn,
    async command(command) {
      const opened = await openFor(command.signal)
      lastId += 1
      return spawnCommand(opened, lastId, env, command)
    },
    run: (run) => runToEnd(spawn, run),
    async close() {
      closed = true
      await (await link)?.close()
    },
  }
}

async function runToEnd(spawn: (options: SpawnOptions) => Promise<Child>, options: RunOptions): Promise<RunResult> {
  const child = await spawn(options)
  const stderr = collect(child.stderr, STDERR_BYTES)
  let stopped = false
  let failure: { error: unknown } | undefined
  child.stdout.on('data', (chunk: Buffer) => {
    if (stopped) return
    try {
      stopped = options.onStdout(chunk) === false
    } catch (error) {
      failure = { error }
      stopped = true
    }
    if (stopped) child.end()
  })
  child.stdout.resume()
  const drained = Promise.all([closed(child.stdout), closed(child.stderr)])
  try {
    const exit = await child.exited
    await settledWithin(drained, DRAIN_MS)
    if (failure !== undefined) throw failure.error
    if (options.signal.aborted && !stopped) throw cancelled()
    return { ...exit, stderr: stderr(), stopped }
  } finally {
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

function collect(stream: Socket, maxBytes: number): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < maxBytes) chunks.push(chunk.subarray(0, maxBytes - size))
    size += chunk.length
  })
  stream.resume()
  return () => Buffer.concat(chunks).toString('utf8')
}

function closed(stream: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve()
    else stream.once('close', () => resolve())
  })
}

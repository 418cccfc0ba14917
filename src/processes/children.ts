import type { Socket } from 'node:net'
import { beginLife, type ExitResult, type StartOptions } from './life.js'
import type { Link } from './link.js'

export type { ExitResult, StartOptions as SpawnOptions } from './life.js'

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

/** Starts one child through the launcher. @throws as `Processes.spawn` says. */
export async function spawnChild(
  link: Link,
  id: number,
  defaultEnv: Record<string, string>,
  options: StartOptions,
): Promise<Child> {
  const { argv, cwd, env = defaultEnv } = options
  const streams = Promise.all([link.door.expect(id, 1), link.door.expect(id, 2)]).then(([stdout, stderr]) => ({
    stdout,
    stderr,
    destroy() {
      stdout.destroy()
      stderr.destroy()
    },
  }))
  const held = options.beforeExec !== undefined
  const begun = await beginLife(link, { type: 'spawn', id, argv, cwd, env, held }, options, { streams })
  const { stdout, stderr } = begun.streams
  const exited = begun.exited.then(({ exitCode, signal }) => ({ exitCode, signal }))
  // Whoever started it reads it, perhaps later.
  exited.catch(() => undefined)
  return { pid: begun.pid, startTime: begun.startTime, stdout, stderr, end: begun.end, exited }
}

import { constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { deferred } from '../lib/async.js'
import { KikiError } from '../lib/errors.js'
import { beginLife, type Ended, type ExitResult, type StartOptions } from './life.js'
import type { Link } from './link.js'
import type { CommandOptions, CommandSignal, FromLauncher } from './protocol.js'

export type { Ended, ExitResult } from './life.js'
export type { CommandSignal, LeftOver } from './protocol.js'
export { COMMAND_SIGNALS } from './protocol.js'

/** A command: a program, and whatever it starts, wherever that goes (SH-02). */
export interface RunningCommand {
  /** Within a sandbox a number of that world. */
  pid: number
  /** Standard output and error in their order; paused until `resume()`, ends when nothing holds it any more. */
  output: Socket
  /** Where it has an input; ended by `end()`. */
  input: Socket | undefined
  signal(signal: CommandSignal): void
  /** Ends all that belongs to it: SIGTERM, after 0.4 s SIGKILL, and where that is not enough its sandbox. */
  end(): void
  /** With `keep`: settles when the program itself has ended. Never rejects. */
  programEnded: Promise<ExitResult>
  /** Settles when nothing that belongs to it is left. @throws as `Child.exited`. */
  exited: Promise<Ended>
}

export interface CommandSpawnOptions extends StartOptions, CommandOptions {}

/** Starts a command through the launcher. @throws as `Processes.spawn` says. */
export async function spawnCommand(
  link: Link,
  id: number,
  defaultEnv: Record<string, string>,
  options: CommandSpawnOptions,
): Promise<RunningCommand> {
  const { argv, cwd, env = defaultEnv, script, input, terminal, keep } = options
  const programEnded = deferred<ExitResult>()
  const streams = terminal === undefined ? pipes(link, id) : terminalStreams(link, id)
  const command: CommandOptions = { script, input, keep, ...(terminal === undefined ? {} : { terminal }) }
  const held = options.beforeExec !== undefined
  const begun = await beginLife(link, { type: 'spawn', id, argv, cwd, env, held, command }, options, {
    ...streams,
    onLeft: programEnded.resolve,
  })
  begun.exited.then(programEnded.resolve, () => programEnded.resolve({ exitCode: null, signal: null }))
  return {
    pid: begun.pid,
    output: begun.streams.output,
    input: begun.streams.input,
    signal: (signal) => link.send({ type: 'signal', id, signal }),
    end: begun.end,
    programEnded: programEnded.promise,
    exited: begun.exited,
  }
}

interface CommandStreams {
  output: Socket
  input: Socket | undefined
  destroy(): void
}

function pipes(link: Link, id: number) {
  const opened = deferred<CommandStreams>()
  return {
    streams: opened.promise,
    onSpawned(message: Extract<FromLauncher, { type: 'spawned' }>): void {
      try {
        const output = openPipe(link, message.output, constants.O_RDONLY)
        const input = message.input === undefined ? undefined : openPipe(link, message.input, constants.O_WRONLY)
        opened.resolve(streamsOf(output, input))
      } catch (error) {
        opened.reject(error)
      } finally {
        link.send({ type: 'opened', id })
      }
    },
  }
}

/** What is said of a pipe may come from within a sandbox: it is one of two plain names, whatever was said. */
function openPipe(link: Link, name: string | undefined, flags: number): Socket {
  if (name === undefined || !/^pipes-\d+-\d+\/\d+$/.test(name)) {
    throw new KikiError('internal_error', 'The launcher named no pipe of its own.')
  }
  const path = join(dirname(link.door.address), name)
  const fd = openSync(path, flags | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  const socket = new Socket({ fd, readable: flags === constants.O_RDONLY, writable: flags === constants.O_WRONLY })
  // What is written to a command that has ended goes nowhere; its end is told.
  socket.on('error', () => undefined)
  return socket
}

/** One connection for both directions; its end is the terminal's. */
function terminalStreams(link: Link, id: number) {
  return { streams: link.door.expect(id, 1).then((socket) => streamsOf(socket, socket)) }
}

function streamsOf(output: Socket, input: Socket | undefined): CommandStreams {
  output.pause()
  return {
    output,
    input,
    destroy() {
      output.destroy()
      input?.destroy()
    },
  }
}

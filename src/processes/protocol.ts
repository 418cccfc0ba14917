import { z } from 'zod'

/**
 * What the host and its launcher say to each other: one JSON object a line, host to launcher on the launcher's standard
 * input, back on its standard output. A child's own output does not travel here. A plain child's streams are connections to
 * the host's door, each opened with the line `<token> <child id> <1 or 2>`; so is a terminal. A command's are named pipes in
 * the door's folder, which the host opens by the names that `spawned` tells: a program can open `/dev/stderr` again when it
 * is a pipe, and cannot when it is a socket.
 */
export type ToLauncher =
  | { type: 'hello'; address: string; token: string }
  | {
      type: 'spawn'
      id: number
      argv: readonly [string, ...string[]]
      cwd: string
      env: Record<string, string>
      /** Wait for `go` before the program is executed (GU-02). */
      held: boolean
      /** Absent for a plain child. */
      command?: CommandOptions
    }
  /** Take connections on the loopback of the launcher's own network and hand each to the door (`<token> 0 3`). */
  | { type: 'tunnel' }
  | { type: 'go'; id: number }
  /** The host has opened the command's pipes. */
  | { type: 'opened'; id: number }
  /** To everything that belongs to the child. */
  | { type: 'signal'; id: number; signal: CommandSignal }
  | { type: 'end'; id: number }

/** A child that may start others, which belong to it wherever they go (SH-02). */
export interface CommandOptions {
  /** The last word of `argv` is a script of bash, which `argv` runs: it marks itself, and costs no shell more. */
  script: boolean
  /** Standard input: a pipe that stays open, or nothing at all (SH-04). A terminal has one always. */
  input: boolean
  /** A pseudo-terminal of this size, in characters. */
  terminal?: { columns: number; rows: number }
  /** What is left when the program ends goes on (`background: true`); otherwise it is ended and told. */
  keep: boolean
}

export const COMMAND_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
export type CommandSignal = (typeof COMMAND_SIGNALS)[number]

/** A process that outlived the program that started it. */
export interface LeftOver {
  pid: number
  name: string
}

const id = z.int().min(1)
const exit = {
  exitCode: z.int().nullable(),
  signal: z.custom<NodeJS.Signals>((value) => /^SIG[A-Z0-9]{2,8}$/.test(String(value))).nullable(),
}

/** What a launcher says. */
export const MESSAGE = z.discriminatedUnion('type', [
  /** Where it takes connections for the host. */
  z.object({ type: z.literal('tunnel'), port: z.int().min(1).max(65_535) }),
  /** The child exists, in a process group whose number is its pid. */
  z.object({
    type: z.literal('spawned'),
    id,
    pid: z.int().min(2),
    /** Names of its pipes, for a command without a terminal. */
    output: z.string().max(100).optional(),
    input: z.string().max(100).optional(),
    /** The limit by which all that belongs to it is known (members.ts). */
    mark: z.int().optional(),
  }),
  /** It could not be started; `code` is the system's (`ENOENT`, `EACCES`, …), `ENOCWD` or `ECANCELED`. */
  z.object({ type: z.literal('failed'), id, code: z.string(), message: z.string() }),
  /** The program ended, and what it started and is kept goes on. */
  z.object({ type: z.literal('left'), id, ...exit }),
  /** The child ended and nothing that belongs to it is left; `left` was ended after it. */
  z.object({
    type: z.literal('exit'),
    id,
    ...exit,
    left: z.array(z.object({ pid: z.int(), name: z.string().max(100) })).optional(),
  }),
])

export type FromLauncher = z.infer<typeof MESSAGE>
/** About one child. */
export type ChildMessage = Exclude<FromLauncher, { type: 'tunnel' }>

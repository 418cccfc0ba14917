/**
 * What the host and its launcher say to each other: one JSON object a line, host to launcher on the launcher's standard
 * input, back on its standard output. A child's own output does not travel here: the launcher hands the child
 * connections to the host's door, each opened with the line `<token> <child id> <1 or 2>`.
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
    }
  | { type: 'go'; id: number }
  | { type: 'end'; id: number }

export type FromLauncher =
  /** The child exists, in a process group whose number is its pid. */
  | { type: 'spawned'; id: number; pid: number }
  /** It could not be started; `code` is the system's (`ENOENT`, `EACCES`, …), `ENOCWD` or `ECANCELED`. */
  | { type: 'failed'; id: number; code: string; message: string }
  /** The child ended and nothing is left of its group. */
  | { type: 'exit'; id: number; exitCode: number | null; signal: NodeJS.Signals | null }

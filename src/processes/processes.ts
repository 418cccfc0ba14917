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
  /** @throws KikiError `not_found` where the program is missing, `cancelled` where the signal was aborted. */
  run(options: RunOptions): Promise<RunResult>
  /** Ends every child and the launcher. */
  close(): Promise<void>
}

import { KikiError } from '../lib/errors.js'

/** One fault of the configuration, with the place to mend. Lines and columns count from 1, columns in UTF-16 units. */
export interface ConfigProblem {
  severity: 'error' | 'warning'
  /** Full path of the file, or the variable or flag that holds the value. */
  source: string
  line?: number
  column?: number
  /** Dotted key, such as `mcp.tool_timeout_ms` or `permission.rules[2].pattern`. */
  key?: string
  message: string
  /** What to do next. */
  hint?: string
  /** The valid key that was probably meant. */
  nearest?: string
}

/** The configuration cannot be used as it stands: nothing was read from it, and nothing was changed (CF-02). */
export class ConfigError extends KikiError {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const errors = problems.filter((problem) => problem.severity === 'error')
    super('invalid_arguments', errors.map(formatProblem).join('\n'), {
      hint: 'Correct the configuration and try again; no setting was read from it and the file was left as it is.',
      data: { problems },
    })
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** `FILE:LINE:COLUMN: message (hint)` on one line. */
export function formatProblem(problem: ConfigProblem): string {
  const place = [problem.source, problem.line, problem.column].filter((part) => part !== undefined).join(':')
  const hint = problem.hint === undefined ? '' : ` (${problem.hint})`
  return `${place}: ${problem.message}${hint}`
}

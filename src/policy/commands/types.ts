import type { CommandClass } from './classes.js'

/** One word of a command after bash has split the line, before it has expanded anything. */
export interface Word {
  /** Quotes and escapes removed; what is not static stays as it was written. What rules are compared with. */
  text: string
  /** As written. */
  raw: string
  /** The value when every unknown expansion is empty; the home folder is `~`, the working folder `.`. */
  value: string
  /** What is certain at the start of the value. */
  prefix: string
  /** `text` is what the program gets: no expansion, no glob, no brace. */
  static: boolean
  /** `value` is what the program gets, up to where home and working folder are. */
  known: boolean
  /** Can become several words or none. */
  splits: boolean
  /** An unquoted glob or brace expansion. */
  glob: boolean
  /** Holds a command or process substitution. */
  substitution: boolean
  /** Names of the variables that it expands. */
  variables: readonly string[]
}

export interface Assignment {
  name: string
  text: string
  value: Word | undefined
}

export interface Redirection {
  /** As written, `2>&1`. */
  text: string
  operator: string
  target: Word | undefined
  /** Empty where it changes nothing that counts (`2>&1`, `>/dev/null`, `<file`). */
  classes: CommandClass[]
}

/** One program that the script can start. */
export interface SimpleCommand {
  /** As written, without its redirections and assignments. */
  text: string
  words: Word[]
  /** The last component of the program's path; empty where it is not static. */
  program: string
  classes: CommandClass[]
  /** The wrappers it was found in, outermost first. */
  via: string[]
  /** The program, or whether a word is an option, is known only when the script runs. */
  dynamic: boolean
  redirections: Redirection[]
  assignments: Assignment[]
  /** Index in `commands` of the wrapper that starts it. */
  parent?: number
  /** Where in the wrapper's words it begins; absent where it was text that the wrapper's shell reads. */
  innerAt?: number
  /** Only possibly a command of its own: words of a program such as `docker exec` that Kiki does not take apart. */
  guessed?: true
}

/** A script taken apart. All classes together are `classes`; only `['read_only']` itself means harmless. */
export interface ParsedScript {
  script: string
  commands: SimpleCommand[]
  redirections: Redirection[]
  assignments: Assignment[]
  classes: CommandClass[]
  /** Set where the script cannot be read or hides a command: no rule ever allows it (PO-04). */
  opaque?: { reason: string; text: string }
}

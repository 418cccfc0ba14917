import type { ProgramRule } from '../rules.js'
import { FILES } from './files.js'
import { GIT } from './git.js'
import { INTERPRETER_RULES } from './interpreters.js'
import { NETWORK } from './network.js'
import { PACKAGES } from './packages.js'
import { READING } from './reading.js'
import { STREAMS } from './streams.js'
import { SYSTEM } from './system.js'

const PROGRAMS: ReadonlyMap<string, ProgramRule> = new Map(
  Object.entries({
    ...NETWORK,
    ...PACKAGES,
    ...INTERPRETER_RULES,
    ...SYSTEM,
    ...GIT,
    ...FILES,
    ...STREAMS,
    ...READING,
  }),
)

/** The rule of a program, by its name without a path. */
export function ruleOf(program: string): ProgramRule | undefined {
  return PROGRAMS.get(program)
}

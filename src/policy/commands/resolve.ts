import { classesOfEnvironment, refusalOfAssignment } from './assignments.js'
import { classesOf, type CommandClass, unionOf } from './classes.js'
import type { RawCommand } from './collect.js'
import { reasonsOfCommand } from './hidden.js'
import { isSecretVariable } from './paths.js'
import { type Program, programOf } from './programs.js'
import { classesByRule } from './rules.js'
import { ruleOf } from './tables/index.js'
import type { Assignment, ParsedScript, SimpleCommand, Word } from './types.js'
import { wrapperOf } from './wrappers.js'
import { unwrap } from './unwrap.js'

/** What one command of the script comes to, with all that it starts. */
export interface Resolved {
  commands: SimpleCommand[]
  reasons: string[]
  /** Scripts that were text within words (`sh -c 'text'`), taken apart. */
  nested: { script: ParsedScript; parent: number; via: string[] }[]
}

export interface Scope {
  /** Parses text that a shell reads; bounded by its depth. */
  parse(text: string): ParsedScript
}

interface Item {
  words: readonly Word[]
  text: string
  via: readonly string[]
  assignments: readonly Assignment[]
  redirections: RawCommand['redirections']
  parent?: number
  innerAt?: number
  guessed?: boolean
}

const NESTING_LIMIT = 24

/** Looks through a command's wrappers and classes each program that it starts. */
export function resolveCommand(raw: RawCommand, scope: Scope): Resolved {
  const out: Resolved = { commands: [], reasons: [], nested: [] }
  add({ ...raw, via: [] }, scope, out)
  return out
}

function add(item: Item, scope: Scope, out: Resolved): void {
  if (out.commands.length >= NESTING_LIMIT || item.via.length >= NESTING_LIMIT) {
    out.reasons.push('too many commands within one another')
    return
  }
  const program = programOf(item.words[0])
  const unwrapped = unwrap(program?.name, item.words)
  const environment = [...item.assignments, ...unwrapped.assignments]
  const index = out.commands.length
  out.reasons.push(...reasonsOfCommand(program?.name, item.words), ...unwrapped.reasons)
  for (const one of unwrapped.assignments) pushDefined(out.reasons, refusalOfAssignment(one))
  out.commands.push({
    text: item.text,
    words: [...item.words],
    program: program?.name ?? '',
    classes: classesOf([
      ...(program === undefined ? UNSEEN : classesOfProgram(program, item.words.slice(1), unwrapped.classes)),
      ...item.redirections.flatMap((one) => one.classes),
      ...classesOfEnvironment(environment),
      ...item.words.flatMap(classesOfVariables),
    ]),
    via: [...item.via],
    dynamic: program === undefined || item.words.some((word) => word.splits && !word.known),
    redirections: [...item.redirections],
    assignments: [...item.assignments],
    ...(item.parent === undefined ? {} : { parent: item.parent }),
    ...(item.innerAt === undefined ? {} : { innerAt: item.innerAt }),
    ...(item.guessed === true ? { guessed: true } : {}),
  })
  const via = [...item.via, program?.name ?? '']
  for (const inner of unwrapped.inner) {
    const words = [...inner.words]
    const text = words.map((word) => word.raw).join(' ')
    add({ words, text, via, assignments: [], redirections: [], parent: index, innerAt: inner.at, guessed: inner.guessed }, scope, out)
  }
  for (const script of unwrapped.scripts) readScript(script, index, via, scope, out)
}

function readScript(script: Word, parent: number, via: string[], scope: Scope, out: Resolved): void {
  if (!script.static) out.reasons.push(`a shell runs text that is known only when the script runs (${script.raw})`)
  out.nested.push({ script: scope.parse(script.static ? script.value : script.text), parent, via })
}

function pushDefined(list: string[], value: string | undefined): void {
  if (value !== undefined) list.push(value)
}

const UNSEEN: CommandClass[] = ['code_execution', 'unknown']

/** A program from a folder of its own may be anything; one whose name differs in case is the same on some disks. */
function classesOfProgram(program: Program, args: readonly Word[], wrapping: readonly CommandClass[] | undefined): CommandClass[] {
  const name = program.name
  const lower = name.toLowerCase()
  const rule = ruleOf(name) ?? ruleOf(lower) ?? ruleOf(versionless(lower))
  const sure = !program.foreign && (ruleOf(name) !== undefined || wrapperOf(name) !== undefined)
  const found = [...(wrapping ?? []), ...(rule === undefined ? [] : classesByRule(rule, lower, args))]
  if (rule === undefined && wrapping === undefined) found.push('unknown')
  if (program.foreign) found.push('code_execution', 'unknown')
  if (!sure) found.push('unknown')
  const versions = args.length === 1 && args[0]?.text === '--version' && sure && wrapping === undefined
  return versions ? ['read_only'] : unionOf(found)
}

/** `python3.12` and `gcc-13` are what they are without a version. */
function versionless(name: string): string {
  return name.replace(/-?\d+(?:\.\d+)*$/, '')
}

function classesOfVariables(word: Word): CommandClass[] {
  return word.variables.some((name) => isSecretVariable(name)) ? ['secret_access'] : []
}


import { classesOfEnvironment, isForRead, refusalOfAssignment } from './assignments.js'
import { type CommandClass, classesOf, unionOf } from './classes.js'
import type { RawCommand } from './collect.js'
import { reasonsOfCommand } from './hidden.js'
import { isSecretVariable } from './paths.js'
import { canonicalName, type Program, programOf } from './programs.js'
import { classesByRule } from './rules.js'
import { ruleOf } from './tables/index.js'
import type { Assignment, ParsedScript, SimpleCommand, Word } from './types.js'
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
  const prefixes = item.assignments.filter((one) => !isForRead(program?.name, one))
  const environment = [...prefixes, ...unwrapped.assignments]
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
    add(
      { words, text, via, assignments: [], redirections: [], parent: index, innerAt: inner.at, guessed: inner.guessed },
      scope,
      out,
    )
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

/** The classes of words alone, without what is around them. `words` begins with the program. */
export function classesOfWords(words: readonly Word[]): CommandClass[] {
  const program = programOf(words[0])
  if (program === undefined) return UNSEEN
  return classesOf(classesOfProgram(program, words.slice(1), unwrap(program.name, words).classes))
}

const UNSEEN: CommandClass[] = ['code_execution', 'unknown']

// Others run a project's own code or fetch a toolchain first, as yarn, cargo and go do.
const VERSIONED =
  /^(?:curl|wget|g?tar|make|cmake|gcc|g\+\+|clang|docker|podman|npm|pip|pip3|ssh|openssl|vim|rsync|zip|unzip|psql|gh|sort|rg|jq|find)$/

/** A program from a folder of its own may be anything; one whose name differs in case is the same on some disks. */
function classesOfProgram(
  program: Program,
  args: readonly Word[],
  wrapping: readonly CommandClass[] | undefined,
): CommandClass[] {
  const name = canonicalName(program.name, (one) => ruleOf(one) !== undefined)
  const rule = ruleOf(name)
  const known = rule !== undefined || wrapping !== undefined
  const sure = known && !program.foreign && program.name === program.name.toLowerCase()
  const found = [...(wrapping ?? []), ...(rule === undefined ? [] : classesByRule(rule, name, args))]
  if (program.foreign) found.push('code_execution')
  if (!sure) found.push('unknown')
  const asksVersion = args.length === 1 && args[0]?.text === '--version' && sure && VERSIONED.test(name)
  return asksVersion ? ['read_only'] : unionOf(found)
}

function classesOfVariables(word: Word): CommandClass[] {
  return word.variables.some((name) => isSecretVariable(name)) ? ['secret_access'] : []
}

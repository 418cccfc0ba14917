import { type CommandClass, unionOf } from './classes.js'
import { type OptionSpec, optionSpec, type ParsedOptions, parseOptions } from './options.js'
import { classesOfWriting, secretsIn } from './paths.js'
import type { Word } from './types.js'

/** One use of a program: its words after the program's name, and how its rule reads them. */
export interface Call {
  program: string
  words: readonly Word[]
  given: ParsedOptions
}

/**
 * What the operands of a program are: `reads` files whose text is shown, `names` of files, `text` that is no
 * path, `writes` files, or `own` where the rule's check looks at them.
 */
export type Operands = 'reads' | 'names' | 'text' | 'writes' | 'own'

/** What is known about one program or subcommand. */
export interface ProgramRule {
  /** What it does whatever its words are. */
  classes: readonly CommandClass[]
  /** Absent where no option of it can do more than the program itself. */
  options: OptionSpec | undefined
  /** Options are listed to find the operands; any other, or one that a glob turns into, is harmless too. */
  lenient: boolean
  /** What an option adds. */
  adds: ReadonlyMap<string, readonly CommandClass[]>
  operands: Operands
  /** Picked by the first operand. */
  subs: ReadonlyMap<string, ProgramRule> | undefined
  check: ((call: Call) => readonly CommandClass[]) | undefined
}

export type ProgramTable = Readonly<Record<string, ProgramRule>>

interface RuleParts {
  /** A line for {@link optionSpec}: every option that is known to do nothing more. */
  options?: string
  lenient?: boolean
  /** Options as in `options`, to what they add. */
  adds?: Readonly<Record<string, readonly CommandClass[]>>
  operands?: Operands
  subs?: ProgramTable
  check?: (call: Call) => readonly CommandClass[]
}

/** Builds a rule. With `options`, `adds` or `subs`, an option that is not listed adds `unknown`. */
export function tool(classes: readonly CommandClass[], parts: RuleParts = {}): ProgramRule {
  const adds = new Map<string, readonly CommandClass[]>()
  for (const [line, more] of Object.entries(parts.adds ?? {})) {
    for (const name of optionSpec(line).kinds.keys()) adds.set(name, more)
  }
  const lines = [parts.options, ...Object.keys(parts.adds ?? {})].filter((line) => line !== undefined)
  const stops = parts.subs === undefined ? '' : '|'
  const listed = lines.length > 0 || parts.subs !== undefined
  return {
    classes,
    options: listed ? optionSpec(stops + lines.join(' ')) : undefined,
    lenient: parts.lenient ?? false,
    adds,
    operands: parts.operands ?? (classes.includes('read_only') ? 'reads' : 'names'),
    subs: parts.subs === undefined ? undefined : new Map(Object.entries(parts.subs)),
    check: parts.check,
  }
}

/** The same rule for each of the names in a line. */
export function same(names: string, rule: ProgramRule): ProgramTable {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, rule]))
}

const NO_OPTIONS = optionSpec('')

/** What one use of a program does; the caller reduces the list with `classesOf`. */
export function classesByRule(rule: ProgramRule, program: string, words: readonly Word[]): CommandClass[] {
  const given = parseOptions(words, rule.options ?? NO_OPTIONS)
  const call: Call = { program, words, given }
  const found: CommandClass[][] = [[...rule.classes], [...(rule.check?.(call) ?? [])]]
  if (rule.options !== undefined && !rule.lenient && (given.unknown.length > 0 || given.risky)) found.push(['unknown'])
  for (const option of given.options) found.push(classesOfOption(rule, option.name, option.value))
  if (rule.subs === undefined) found.push(classesOfOperands(rule, given))
  else found.push(classesOfSub(rule.subs, call))
  return unionOf(...found)
}

function classesOfOption(rule: ProgramRule, name: string, value: Word | undefined): CommandClass[] {
  const more = rule.adds.get(name) ?? []
  const writes = more.length === 1 && more[0] === 'file_write'
  if (writes && value !== undefined) return value.text === '-' ? [] : classesOfWriting(value)
  return unionOf(more, value !== undefined && rule.operands === 'reads' ? secretsIn(value) : [])
}

function classesOfOperands(rule: ProgramRule, given: ParsedOptions): CommandClass[] {
  switch (rule.operands) {
    case 'text':
    case 'own':
    case 'names':
      return []
    case 'writes':
      return given.operands.flatMap((word) => classesOfWriting(word))
    case 'reads':
      return given.operands.flatMap((word) => [...secretsIn(word), ...hiddenIn(word)])
  }
}

/** Which file is read is known only when the script runs; it could be a secret. */
function hiddenIn(word: Word): CommandClass[] {
  return word.known || word.glob || word.text.startsWith('<(') ? [] : ['unknown']
}

function classesOfSub(subs: ReadonlyMap<string, ProgramRule>, call: Call): CommandClass[] {
  const [first] = call.given.operands
  const place = call.given.places[0]
  if (first === undefined || place === undefined) return ['unknown']
  const rule = first.static ? subs.get(first.value) : undefined
  if (rule === undefined) return ['unknown']
  return classesByRule(rule, `${call.program} ${first.value}`, call.words.slice(place + 1))
}

/** Whether an option was given under one of the names. */
export function hasOption(call: Call, ...names: readonly string[]): boolean {
  return (
    call.given.options.some((option) => names.includes(option.name)) ||
    call.given.unknown.some((name) => names.includes(name))
  )
}

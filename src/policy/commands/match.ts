import { isHarmlessAssignment } from './assignments.js'
import { type CommandClass, unionOf } from './classes.js'
import { mayBeOption, parseOptions } from './options.js'
import { programOf } from './programs.js'
import { bareText } from './recover.js'
import { classesOfWords } from './resolve.js'
import { ruleOf } from './tables/index.js'
import type { Assignment, ParsedScript, Redirection, SimpleCommand, Word } from './types.js'
import { plainWord } from './words.js'

/** What a rule says about the commands that it matches. */
export type RuleDecision = 'allow' | 'ask' | 'deny'

/**
 * Whether `Bash(pattern)` rules match a script (PO-04). `*` stands for any text within one simple command; a
 * trailing ` *` (or `:*`, as some tools write it) also matches the bare command. Patterns are compared with the
 * command's words joined by single spaces.
 *
 * - `deny`, `ask`: one simple command is enough, under any of its spellings: as written, unquoted, by the program's
 *   name without its path or letter case, without the program's leading options, inside of any wrapper, with its
 *   assignments and redirections. An opaque script matches if its text without quotes holds the pattern's fixed
 *   parts in their order.
 * - `allow`: never an opaque script; every simple command, assignment and redirection has to be covered by one of
 *   the patterns, which may be given together. See {@link covers} for what a pattern covers.
 */
export function commandRuleMatches(
  pattern: string | readonly string[],
  parsed: ParsedScript,
  decision: RuleDecision,
): boolean {
  const patterns = (typeof pattern === 'string' ? [pattern] : pattern).map(readPattern)
  if (decision === 'allow') return isAllowed(patterns, parsed)
  return patterns.some((one) => {
    if (parsed.opaque !== undefined && couldContain(one, parsed.script)) return true
    return [...parsed.commands.flatMap(spellings), parsed.script.trim()].some((text) => one.whole.test(text))
  })
}

interface Pattern {
  text: string
  whole: RegExp
  /** Fixed text before the first `*`. */
  head: string
  open: boolean
}

function readPattern(given: string): Pattern {
  const text = given.trim().replace(/:\*$/, ' *')
  const star = text.indexOf('*')
  return { text, whole: globOf(text), head: star < 0 ? text : text.slice(0, star), open: star >= 0 }
}

function globOf(text: string): RegExp {
  const tail = text.endsWith(' *') && text.length > 2
  const body = (tail ? text.slice(0, -2) : text).replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*+/g, '[^]*')
  return new RegExp(`^${body}${tail ? '(?: [^]*)?' : ''}$`)
}

/* --- deny and ask: everything that the command could be called --- */

function spellings(command: SimpleCommand): string[] {
  const [first, ...rest] = command.words
  if (first === undefined) return []
  const texts = rest.map((word) => word.text)
  const program = command.program
  const bodies = [
    command.text,
    [first.text, ...texts].join(' '),
    ...[...new Set([program, program.toLowerCase()])].map((name) => [name, ...texts].join(' ')),
    ...withoutLeadingOptions(program.toLowerCase(), rest).map((words) => [program.toLowerCase(), ...words].join(' ')),
  ]
  const before = command.assignments.map((one) => `${one.text} `).join('')
  const after = command.redirections.map((one) => ` ${redirectionText(one)}`).join('')
  return bodies.flatMap((body) => [body, `${body}${after}`, `${before}${body}`, `${before}${body}${after}`])
}

/** `git -C dir push` is a `git push`. */
function withoutLeadingOptions(program: string, rest: readonly Word[]): string[][] {
  const rule = ruleOf(program)
  const place = rule?.options?.stops ? parseOptions(rest, rule.options).places[0] : undefined
  const plain = rest.findIndex((word) => !word.text.startsWith('-'))
  return [place, plain].filter((at) => at !== undefined && at > 0).map((at) => rest.slice(at).map((word) => word.text))
}

function couldContain(pattern: Pattern, script: string): boolean {
  const parts = pattern.text.split(/[*\s]+/).filter(Boolean)
  const text = bareText(script).toLowerCase()
  let at = 0
  for (const part of parts) {
    const found = text.indexOf(part.toLowerCase(), at)
    if (found < 0) return false
    at = found + part.length
  }
  return true
}

/* --- allow: only what the pattern's author can have meant --- */

function isAllowed(patterns: readonly Pattern[], parsed: ParsedScript): boolean {
  if (parsed.opaque !== undefined || parsed.commands.length === 0) return false
  const ofCommands = new Set(parsed.commands.flatMap((one) => one.redirections))
  if (parsed.redirections.some((one) => one.classes.length > 0 && !ofCommands.has(one))) return false
  const prefixes = new Set(parsed.commands.flatMap((one) => one.assignments))
  if (!parsed.assignments.every((one) => prefixes.has(one) || standsAlone(one, patterns))) return false
  return parsed.commands.every((_one, index) => isCovered(patterns, parsed.commands, index))
}

/** Assignments of small-letter names stay in the script; others may change what a program finds around it. */
function standsAlone(assignment: Assignment, patterns: readonly Pattern[]): boolean {
  if (/^[a-z][a-z0-9]*$/.test(assignment.name) || isHarmlessAssignment(assignment)) return true
  return patterns.some((one) => !one.open && one.text === assignment.text)
}

function isCovered(patterns: readonly Pattern[], commands: readonly SimpleCommand[], index: number): boolean {
  const command = commands[index]
  if (command === undefined) return false
  if (patterns.some((pattern) => covers(pattern, command))) return true
  if (patterns.some((pattern) => coversInner(pattern, commands, command))) return true
  if (command.guessed === true && command.parent !== undefined && isCovered(patterns, commands, command.parent))
    return true
  const starts = commands.some((one) => one.parent === index && one.guessed !== true)
  return starts && TRANSPARENT.test(command.program) && isPlain(command)
}

// Wrappers that neither grant nor change anything: what they start has to be covered, they need not be.
const TRANSPARENT = /^(?:env|timeout|nice|ionice|nohup|stdbuf|time|command|builtin)$/

function isPlain(command: SimpleCommand): boolean {
  const [first] = command.words
  const assigns = command.words.slice(1).some((word) => /^[A-Za-z_]\w*=/.test(word.text))
  return (
    first?.text === command.program &&
    !command.words.some((word) => movesElsewhere(command, word)) &&
    !assigns &&
    command.classes.every((one) => one === 'read_only') &&
    command.assignments.every(isHarmlessAssignment) &&
    command.redirections.every((one) => one.classes.length === 0)
  )
}

/**
 * A pattern covers a command if it matches its words, and
 * - what is only known when the script runs (an unquoted `$x`, any substitution) is spelled out, without a `*`;
 * - a redirection that writes, or reads what counts, stands at the pattern's end, a variable at its beginning;
 * - its `*` adds no danger: where the fixed part only reads, so does the command (`git log *` does not cover
 *   `git log --output=f`), and `destructive` and `privilege_escalation` have to be in the fixed part already.
 */
function covers(pattern: Pattern, command: SimpleCommand): boolean {
  const before = command.assignments.filter((one) => !isHarmlessAssignment(one)).map((one) => `${one.text} `)
  const after = command.redirections.filter((one) => one.classes.length > 0).map((one) => ` ${redirectionText(one)}`)
  const inner = withoutEnds(pattern.text, before.join(''), after.join(''))
  if (inner === undefined) return false
  const body = inner === pattern.text ? pattern : readPattern(inner)
  if (!allowedTexts(command).some((text) => body.whole.test(text))) return false
  if (!body.open) return true
  return !command.words.some(isUncertain) && !widens(body, command)
}

function withoutEnds(text: string, before: string, after: string): string | undefined {
  if (!text.startsWith(before) || !text.endsWith(after) || text.length < before.length + after.length) return undefined
  return text.slice(before.length, text.length - after.length)
}

const INNER_BLANK = '\uFFFF'

/** A blank inside of a word is none between two; a program from a folder of its own is not the one by that name. */
function allowedTexts(command: SimpleCommand): string[] {
  const [first, ...rest] = command.words
  const program = programOf(first)
  if (first === undefined || program === undefined) return []
  const plain = (text: string) => text.replace(/\s/g, INNER_BLANK)
  const name = program.foreign ? first.text : program.name
  const words = rest.map((word) => plain(word.text))
  const raw = rest.map((word) => word.raw)
  return [[plain(name), ...words].join(' '), [first.raw, ...raw].join(' '), [plain(first.text), ...words].join(' ')]
}

function isUncertain(word: Word): boolean {
  return word.substitution || mayBeOption(word)
}

function widens(pattern: Pattern, command: SimpleCommand): boolean {
  if (choosesOther(pattern, command)) return true
  const head = pattern.head.trim().split(/\s+/).filter(Boolean).map(plainWord)
  const own = unionOf(
    classesOfWords(command.words),
    command.classes.filter((one) => GRAVE.has(one) || (command.program === 'git' && one === 'code_execution')),
  )
  const fixed = head.length === 0 ? [] : [classesOfWords(head), classesOfWords([...head, plainWord('x')])]
  const reads = fixed.length > 0 && fixed.every((classes) => classes.every((one) => one === 'read_only'))
  if (reads && own.some((one) => one !== 'read_only')) return true
  return own.some((one) => GRAVE.has(one) && !fixed.some((classes) => classes.includes(one)))
}

// Options of npm and npx that leave alone what runs; npm takes any beginning of an option for it.
const NPM_HARMLESS =
  /^(?:-[adDEhlqsSvy]|--(?:all|color|depth|dry-run|force|help|if-present|ignore-scripts|json|long|no-audit|no-color|no-fund|no-save|offline|omit|prefer-offline|production|quiet|save|save-dev|save-exact|silent|verbose|version|yes)(?:=\w*)?)$/
const STEERS =
  /^(?:-C.*|-[a-z]*[crp]|-w|-F|--(?:script|shell|prefix|dir|cwd|node|userconf|globalconf|global|location|filter|workspace|config|pnpmfile|use-yarnrc|rc|preload|require|import|loader|package|call|registry|cache|modules|top-level|yarn|bun|env).*)$/

/** Whether a word beyond the pattern's fixed part makes a package manager or `env` run something else. */
function choosesOther(pattern: Pattern, command: SimpleCommand): boolean {
  const fixed = pattern.head.trim().split(/\s+/)
  const program = command.program.toLowerCase()
  const words = optionsRead(program, command.words)
  return words.some(
    (word, at) =>
      at > 0 && fixed[at] !== word.text && (steersPackages(program, word.value) || movesElsewhere(command, word)),
  )
}

/** What stands behind `--`, or behind the program that npx runs, belongs to another program. */
function optionsRead(program: string, words: readonly Word[]): readonly Word[] {
  const end = words.findIndex(
    (word, at) =>
      at > 0 && (word.text === '--' || (/^(?:npx|pnpx|bunx)$/.test(program) && !word.value.startsWith('-'))),
  )
  return end < 0 ? words : words.slice(0, end)
}

function steersPackages(program: string, word: string): boolean {
  if (/^(?:npm|npx)$/.test(program)) return word.startsWith('-') && !NPM_HARMLESS.test(word)
  return /^(?:pnpm|yarn|bun|cnpm|pnpx|bunx)$/.test(program) && STEERS.test(word)
}

/** `env -C DIR npm test` is the test of another project. */
function movesElsewhere(command: SimpleCommand, word: Word): boolean {
  return command.program.toLowerCase() === 'env' && /^-[a-zA-Z0-9]*C|^--c/.test(word.value)
}

const GRAVE: ReadonlySet<CommandClass> = new Set(['destructive', 'privilege_escalation'])

/** `sudo apt *` names the program within the wrapper; `sudo *` does not, so what it starts needs its own rule. */
function coversInner(pattern: Pattern, commands: readonly SimpleCommand[], command: SimpleCommand): boolean {
  let place: number | undefined = 0
  for (let one = command; one.parent !== undefined; ) {
    const parent = commands[one.parent]
    if (parent === undefined) return false
    place = one.innerAt === undefined || place === undefined ? undefined : place + one.innerAt
    if (covers(pattern, parent) && (!pattern.open || (reaches(pattern, parent, place) && !widens(pattern, command))))
      return true
    one = parent
  }
  return false
}

/** Whether the pattern's fixed part goes on beyond the program at that place; a shell's text has no place. */
function reaches(pattern: Pattern, parent: SimpleCommand, place: number | undefined): boolean {
  if (place === undefined) return false
  const words = parent.words.slice(0, place + 1).map((word) => word.text)
  return pattern.head.length >= words.join(' ').length
}

function redirectionText(redirection: Redirection): string {
  const target = redirection.target?.text ?? ''
  return `${redirection.operator} ${target}`.trim()
}

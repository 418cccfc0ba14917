import { homedir } from 'node:os'
import { join, relative, sep } from 'node:path'
import picomatch from 'picomatch'
import type { DecisionKind } from './modes.js'

/** What a rule's argument pattern is compared with: paths, a shell command, or nothing. */
export type ArgumentKind = 'paths' | 'command' | 'none'

/** One standing rule, read from its text (PO-02). */
export interface Rule {
  decision: DecisionKind
  /** As the owner wrote it. */
  pattern: string
  tool: picomatch.Matcher
  /** The text in brackets; undefined where the rule is about the tool whatever its arguments. */
  argument: string | undefined
  /** Name or id of the one connection that it is for. */
  connection: string | undefined
  /** Absolute path of the one workspace that it is for, with what lies in it. */
  workspace: string | undefined
  /** Where it stands, for people: `config.toml:12` or `owner rule 3`. */
  from: string
}

export interface RuleSource {
  decision: DecisionKind
  pattern: string
  connection?: string | undefined
  workspace?: string | undefined
}

/** A place that a call's arguments name. */
export interface Target {
  /** Absolute, as the arguments spell it. */
  given: string
  /** Where it really leads, links followed. */
  real: string
  /** Whatever lies in it is meant too (a folder that is deleted or moved). */
  tree?: boolean
}

/** What rules judge: one call. */
export interface Subject {
  tool: string
  connection: { id: string; name: string }
  workspace: string
  targets: readonly Target[]
  /** Whether patterns fit the call's command (`Bash(git status*)`): an allow all of it, an ask or a deny any part of it (PO-04). */
  command?: (patterns: readonly string[], decision: DecisionKind) => boolean
}

const PATTERN = /^([A-Za-z0-9_*-]{1,64})(?:\((.*)\))?$/s

/**
 * Reads a rule. `argumentsOf` says what the named tool's argument pattern means; undefined for a name that no native tool has.
 * @returns the rule, or what is wrong with it in words (PO-05).
 */
export function readRule(
  source: RuleSource,
  from: string,
  argumentsOf: (tool: string) => ArgumentKind | undefined,
): Rule | { problem: string } {
  const found = PATTERN.exec(source.pattern.trim())
  const [, tool = '', argument] = found ?? []
  if (found === null) {
    return {
      problem: `"${source.pattern}" is no pattern: write a tool's name, with * if you like, or Tool(argument pattern)`,
    }
  }
  if (argument !== undefined) {
    const problem = argumentProblem(tool, argument, argumentsOf(tool))
    if (problem !== undefined) return { problem }
  }
  if (source.workspace !== undefined && absolute(source.workspace) === undefined)
    return { problem: `workspace "${source.workspace}" is not an absolute path` }
  return {
    decision: source.decision,
    pattern: source.pattern.trim(),
    tool: picomatch(tool.replaceAll('**', '*'), { nobrace: true, noextglob: true }),
    argument,
    connection: source.connection,
    workspace: source.workspace === undefined ? undefined : absolute(source.workspace),
    from,
  }
}

function argumentProblem(tool: string, argument: string, kind: ArgumentKind | undefined): string | undefined {
  if (argument.trim() === '') return `the brackets after ${tool} are empty: leave them out to mean every call`
  if (tool.includes('*')) return `${tool} means several tools, so it can have no argument pattern`
  if (tool.startsWith('mcp__')) return `upstream tools such as ${tool} are matched by name only`
  if (kind === undefined) return `there is no tool ${tool} whose arguments could be matched`
  return kind === 'none' ? `the arguments of ${tool} cannot be matched: leave the brackets out` : undefined
}

/** The first rule of a decision that is about a call, or those that together are: parts of a command may be allowed by several. */
export function findRules(rules: readonly Rule[], subject: Subject, decision: DecisionKind): readonly Rule[] {
  const able = rules.filter((rule) => rule.decision === decision && isFor(rule, subject))
  const found = able.find((rule) => ruleMatches(rule, subject))
  if (found !== undefined) return [found]
  if (decision !== 'allow' || able.length < 2) return []
  const patterns = able.flatMap(({ argument }) => argument ?? [])
  return subject.command?.(patterns, decision) === true ? able : []
}

function isFor(rule: Rule, subject: Omit<Subject, 'targets'>): boolean {
  if (!rule.tool(subject.tool)) return false
  const { id, name } = subject.connection
  if (rule.connection !== undefined && rule.connection !== id && rule.connection !== name) return false
  return rule.workspace === undefined || isWithin(subject.workspace, rule.workspace)
}

/** Whether a rule is about a call. An allow has to cover all of it; an ask or a deny only some of it. */
export function ruleMatches(rule: Rule, subject: Subject): boolean {
  if (!isFor(rule, subject)) return false
  const { argument } = rule
  if (argument === undefined) return true
  if (subject.command !== undefined) return subject.command([argument], rule.decision)
  const matches = pathMatcher(argument, subject.workspace, rule.decision !== 'allow')
  if (rule.decision === 'allow') {
    return subject.targets.length > 0 && subject.targets.every(({ given, real }) => matches(given) && matches(real))
  }
  return subject.targets.some(
    ({ given, real, tree }) =>
      matches(given) || matches(real) || (tree === true && reachesInto(argument, subject.workspace, real)),
  )
}

/** Whether a deny rule of `tool` forbids one real path: asked again where the path is used, so that no swap of links passes it (FC-P09). */
export function deniesPath(rules: readonly Rule[], subject: Omit<Subject, 'targets'>, path: string): Rule | undefined {
  return rules.find(
    (rule) =>
      rule.decision === 'deny' &&
      rule.argument !== undefined &&
      ruleMatches(rule, { ...subject, targets: [{ given: path, real: path }] }),
  )
}

/**
 * Paths in rules are globs as in .gitignore: `~/…` and `/…` are absolute; one with a slash stands from the workspace; one without
 * means that name at any depth. With `below` what a pattern names includes everything in it: a deny or an ask must not be
 * passed by naming a part. An allow means exactly what it says; `src/` and `src/**` say everything in `src`.
 */
function pathMatcher(pattern: string, workspace: string, below: boolean): (path: string) => boolean {
  const { base, glob } = rooted(pattern, workspace)
  const options = { dot: true, nonegate: true, noextglob: true }
  const matches = picomatch(below || pattern.endsWith('/') ? [glob, `${glob}/**`] : [glob], options)
  return (path) => {
    const inside = base === '' ? path.slice(1) : isWithin(path, base) ? relative(base, path) : undefined
    return inside !== undefined && matches(inside.split(sep).join('/'))
  }
}

/** Whether the pattern's fixed beginning lies in a folder, so that the folder may hold what it names. */
function reachesInto(pattern: string, workspace: string, folder: string): boolean {
  const { base, glob } = rooted(pattern, workspace)
  const fixed = picomatch.scan(glob).base
  return isWithin(join(base === '' ? '/' : base, fixed), folder)
}

function rooted(pattern: string, workspace: string): { base: string; glob: string } {
  const trimmed = pattern.endsWith('/') ? pattern.slice(0, -1) : pattern
  if (trimmed === '~' || trimmed.startsWith('~/')) return { base: homedir(), glob: trimmed.slice(2) || '**' }
  if (trimmed.startsWith('/')) return { base: '', glob: trimmed.slice(1) || '**' }
  const local = trimmed.startsWith('./') ? trimmed.slice(2) : trimmed
  return { base: workspace, glob: trimmed.includes('/') ? local : `**/${local}` }
}

function absolute(path: string): string | undefined {
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1))
  return path.startsWith('/') || /^[A-Za-z]:[\\/]/.test(path) ? path : undefined
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

import { homedir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { foldPath } from '../lib/spelling.js'
import type { DecisionKind } from './modes.js'
import { nameGlob, type PathGlob, pathGlob } from './path-glob.js'

/** What a rule's argument pattern is compared with: paths, a shell command, or nothing. */
export type ArgumentKind = 'paths' | 'command' | 'none'

/** One standing rule, read from its text (PO-02). */
export interface Rule {
  decision: DecisionKind
  /** As the owner wrote it. */
  pattern: string
  tool: (name: string) => boolean
  /** The text in brackets; undefined where the rule is about the tool whatever its arguments. */
  argument: string | undefined
  /** The same read as a path, of a tool whose arguments are paths. */
  path: PathPattern | undefined
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
  /** The file system takes other spellings for the same file: a deny or an ask means them all (PA-04). */
  anySpelling?: boolean
}

/** What rules judge: one call. */
export interface Subject {
  tool: string
  /** Tools whose deny and ask rules about paths bind this one too: `Read` for what shows or carries content, `Write` for what changes. */
  countsAs?: readonly string[]
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
    tool: nameGlob(tool),
    argument,
    path: argument === undefined || argumentsOf(tool) !== 'paths' ? undefined : readPath(argument),
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
  if (!rule.tool(subject.tool) && !isForAnother(rule, subject)) return false
  const { id, name } = subject.connection
  if (rule.connection !== undefined && rule.connection !== id && rule.connection !== name) return false
  return rule.workspace === undefined || isWithin(subject.workspace, rule.workspace)
}

/** A path that may not be read or written is meant whatever tool reads or writes it; an allow is for its own tool only. */
function isForAnother(rule: Rule, { countsAs = [] }: Omit<Subject, 'targets'>): boolean {
  return rule.decision !== 'allow' && rule.path !== undefined && countsAs.some(rule.tool)
}

/** Whether a rule is about a call. An allow has to cover all of it; an ask or a deny only some of it. */
export function ruleMatches(rule: Rule, subject: Subject): boolean {
  if (!isFor(rule, subject)) return false
  const { argument } = rule
  if (argument === undefined) return true
  if (subject.command !== undefined) return subject.command([argument], rule.decision)
  const path = rule.path
  if (path === undefined) return false
  const matches = (place: string) => matchesPath(path, subject.workspace, place, rule.decision)
  if (rule.decision === 'allow') {
    return subject.targets.length > 0 && subject.targets.every(({ given, real }) => matches(given) && matches(real))
  }
  return subject.targets.some((target) => restricts(path, subject.workspace, target, rule.decision))
}

function restricts(path: PathPattern, workspace: string, target: Target, decision: DecisionKind): boolean {
  const { given, real, tree, anySpelling } = target
  if (matchesPath(path, workspace, given, decision) || matchesPath(path, workspace, real, decision)) return true
  if (tree === true && reachesInto(path, workspace, real)) return true
  if (anySpelling !== true) return false
  const folded = { given: foldPath(given), real: foldPath(real), ...(tree === true ? { tree } : {}) }
  return restricts(path.folded(), foldPath(workspace), folded, decision)
}

/** Whether a deny rule of `tool` forbids one real path: asked again where the path is used, so that no swap of links passes it (FC-P09). */
export function deniesPath(
  rules: readonly Rule[],
  subject: Omit<Subject, 'targets'>,
  path: string,
  anySpelling = false,
): Rule | undefined {
  return rules.find(
    (rule) =>
      rule.decision === 'deny' &&
      rule.argument !== undefined &&
      ruleMatches(rule, { ...subject, targets: [{ given: path, real: path, anySpelling }] }),
  )
}

/** Where a rule's path pattern stands, and what it matches below that place. */
interface PathPattern {
  /** `workspace`: where the call's session works. */
  from: 'home' | 'root' | 'workspace'
  glob: PathGlob
  /** The same with everything in what it names. */
  below: PathGlob
  /** It says everything in a folder by itself. */
  folder: boolean
  /** The same for folded paths. */
  folded(): PathPattern
  isFolded?: true
}

/**
 * Paths in rules are globs as in .gitignore: `~/…` and `/…` are absolute; one with a slash stands from the workspace; one without
 * means that name at any depth. A deny or an ask includes everything in what it names: it must not be passed by naming a part. An
 * allow means exactly what it says; `src/` and `src/**` say everything in `src`.
 */
function readPath(pattern: string): PathPattern {
  const folder = pattern.endsWith('/')
  const trimmed = folder ? pattern.slice(0, -1) : pattern
  const of = (from: PathPattern['from'], glob: string): PathPattern => ({
    ...{ from, folder, glob: pathGlob(glob), below: pathGlob(`${glob}/**`) },
    folded: () => ({ ...of(from, foldPath(glob)), isFolded: true }),
  })
  if (trimmed === '~' || trimmed.startsWith('~/')) return of('home', trimmed.slice(2) || '**')
  if (trimmed === '' || trimmed.startsWith('/')) return of('root', trimmed.slice(1) || '**')
  const local = trimmed.startsWith('./') ? trimmed.slice(2) : trimmed
  return of('workspace', trimmed.includes('/') ? local : `**/${local}`)
}

function baseOf({ from, isFolded }: PathPattern, workspace: string): string {
  if (from === 'home') return isFolded === true ? foldPath(homedir()) : homedir()
  return from === 'root' ? '/' : workspace
}

function matchesPath(pattern: PathPattern, workspace: string, path: string, decision: DecisionKind): boolean {
  const base = baseOf(pattern, workspace)
  if (!isWithin(path, base)) return false
  const inside = relative(base, path).split(sep).join('/')
  const below = decision !== 'allow' || pattern.folder
  return pattern.glob.matches(inside) || (below && pattern.below.matches(inside))
}

/** Whether the pattern's fixed beginning lies in a folder, so that the folder may hold what it names. */
function reachesInto(pattern: PathPattern, workspace: string, folder: string): boolean {
  return isWithin(join(baseOf(pattern, workspace), pattern.glob.fixed), folder)
}

function absolute(path: string): string | undefined {
  if (path === '~' || path.startsWith('~/')) return join(homedir(), path.slice(1))
  return path.startsWith('/') || /^[A-Za-z]:[\\/]/.test(path) ? path : undefined
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

import type { Config } from '../config/schema.js'
import type { Grant } from '../grants/grant.js'
import { commandRuleMatches } from '../policy/commands/match.js'
import { openShellParser, type ShellParser } from '../policy/commands/parser.js'
import type { ParsedScript, SimpleCommand } from '../policy/commands/types.js'
import type { Decision, DecisionInput } from '../policy/decide.js'
import type { Subject } from '../policy/rules.js'
import type { Shell } from '../tools/shell/shell.js'
import type { Tool } from '../tools/tool.js'

/** Takes scripts apart. */
export interface Scripts {
  read(script: string): Promise<ParsedScript>
}

/** The grammar takes a tenth of a second to load: it is loaded with the first script, so that no start waits for it (SP-14). */
export function createScripts(): Scripts {
  let opening: Promise<ShellParser> | undefined
  return {
    async read(script) {
      opening ??= openShellParser()
      return (await opening).parse(script)
    },
  }
}

/** The script in a call's arguments, taken apart; undefined for a tool that runs none. */
export async function scriptOf(
  scripts: Scripts,
  tool: Pick<Tool, 'command'>,
  args: unknown,
): Promise<ParsedScript | undefined> {
  return tool.command === undefined ? undefined : scripts.read(tool.command(args))
}

/** Words of a command that make its kind at most: the program and its subcommand (AP-04). */
const PREFIX_WORDS = 2
/** A subcommand, and no file, option or number. */
const SUBCOMMAND = /^[a-z][a-z:_-]*$/i

/** How rules are compared with a script (PO-04). */
export function commandMatcher(parsed: ParsedScript): NonNullable<Subject['command']> {
  return (patterns, decision) => commandRuleMatches(patterns, parsed, decision)
}

export function classesOfCommand(parsed: ParsedScript, config: Config): NonNullable<DecisionInput['classes']> {
  return { found: parsed.classes, decided: config.commands.classes }
}

/** Whether any of its commands is there to use the network (SB-01). */
export function needsNetwork({ classes }: ParsedScript): boolean {
  return classes.includes('network_egress') || classes.includes('package_install')
}

/** Why the owner is asked about a command that its sandbox would leave without the network; approving gives it to this one command. */
export function networkGuard(
  tool: Pick<Tool, 'runsCommand'>,
  script: ParsedScript | undefined,
  { network, sandbox }: Pick<Grant, 'network' | 'sandbox'>,
): string | undefined {
  if (tool.runsCommand !== true || script === undefined || sandbox === 'off' || network !== 'off') return undefined
  if (!needsNetwork(script)) return undefined
  return 'It needs the network, which is off for this connection (connection.network). Approved, this one command reaches it.'
}

/**
 * Marks a command that would run without a sandbox (SB-02).
 * @throws KikiError `sandbox_unavailable` where one is required and none works: before anything is claimed (GU-12).
 */
export async function withConfinement(
  shell: Pick<Shell, 'isUnconfined'>,
  tool: Pick<Tool, 'runsCommand'>,
  { sandbox }: Pick<Grant, 'sandbox'>,
  decision: Decision,
): Promise<Decision> {
  if (tool.runsCommand !== true || !(await shell.isUnconfined(sandbox))) return decision
  return { ...decision, unconfined: true }
}

/** Program and subcommand of each simple command; null for a script whose commands are not all known, which is only approved once. */
export function prefixesOf(parsed: ParsedScript): string[] | null {
  if (parsed.opaque !== undefined || parsed.commands.length === 0) return null
  const prefixes = parsed.commands.map(prefixOf)
  return prefixes.every((prefix) => prefix !== undefined) ? prefixes : null
}

function prefixOf({ words, dynamic, assignments, redirections }: SimpleCommand): string | undefined {
  const [program, second] = words
  const plain = assignments.length === 0 && redirections.every(({ classes }) => classes.length === 0)
  if (dynamic || !plain || program === undefined || !program.static) return undefined
  const hasSubcommand = second?.static === true && SUBCOMMAND.test(second.text)
  return words
    .slice(0, hasSubcommand ? PREFIX_WORDS : 1)
    .map(({ text }) => text)
    .join(' ')
}

/** A script for people who decide about it: each simple command with its classes (CC-03, AP-03). */
export function describeScript({ commands, classes, opaque }: ParsedScript) {
  return {
    classes,
    commands: commands.map(({ text, classes: found, via }) => ({ text, classes: found, via })),
    ...(opaque === undefined ? {} : { opaque: opaque.reason }),
  }
}

export type DescribedScript = ReturnType<typeof describeScript>

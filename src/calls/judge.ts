import { isAbsolute, resolve } from 'node:path'
import type { Question } from '../approvals/approvals.js'
import { kindsOf } from '../approvals/kinds.js'
import type { Config } from '../config/schema.js'
import type { Connection } from '../grants/connections.js'
import { KikiError } from '../lib/errors.js'
import { canonicalJson, sha256 } from '../lib/json.js'
import { createSessionChanges } from '../operations/changes.js'
import type { ParsedScript } from '../policy/commands/types.js'
import { type Decision, type DecisionInput, decide } from '../policy/decide.js'
import { parseMode } from '../policy/modes.js'
import { deniesPath, type Rule, type Subject, type Target } from '../policy/rules.js'
import type { Profile, Session } from '../sessions/sessions.js'
import { definitionOf } from '../tools/schema.js'
import type { Tool } from '../tools/tool.js'
import { resolvePath } from '../workspace/files.js'
import { createSpellings } from '../workspace/spelling.js'
import type { Workspace } from '../workspace/workspace.js'
import type { GateDeps } from './call-tool.js'
import { classesOfCommand, commandMatcher, prefixesOf } from './command.js'
import { guardsOf, keepGuarded, keepSecrets, secretsOf, showsContent } from './guards.js'
import { checkProfile } from './steps.js'

export type JudgeDeps = Pick<GateDeps, 'rules' | 'approvals' | 'config' | 'store' | 'changesFolder'>

export interface JudgeInput {
  tool: Omit<Tool, 'run'>
  /** Parsed. */
  args: unknown
  /** Of a tool that runs a command. */
  script: ParsedScript | undefined
  connection: Connection
  session: Session
  profile: Profile | undefined
  workspace: Workspace
}

export interface Judgement {
  decision: Decision
  /** What an approval of it would cover; only where the owner must be asked. */
  question?: Question
  /** Where the places that its arguments name really lead now. */
  places?: readonly string[]
}

/** The standing policy on one call (PO-03): mode and rules, guards, what the owner approved for the session. */
export function judge(deps: JudgeDeps, input: JudgeInput): Judgement {
  const { tool, script, connection, session, profile, workspace } = input
  checkProfile(tool, connection, session, profile)
  const rules = deps.rules.current()
  const facts: DecisionInput = { tool, ceiling: connection.grant.ceiling, sessionMode: session.mode }
  const profileMode = profile?.mode === undefined ? undefined : parseMode(profile.mode)
  if (profileMode !== undefined) facts.profileMode = profileMode
  const content = showsContent(tool)
  if (tool.effect === 'read' && rules.length === 0 && !namesSecret(deps.config(), input)) {
    if (content) keepSecrets(workspace, deps.config(), [])
    return { decision: decide(facts) }
  }
  const restricting = rules.some(({ decision, argument }) => decision !== 'allow' && argument !== undefined)
  // Only such rules ask how a file system takes spellings.
  const spellings = restricting ? createSpellings() : () => false
  const subject = subjectOf(input, spellings)
  Object.assign(facts, { rules, subject })
  if (script !== undefined) facts.classes = classesOfCommand(script, deps.config())
  const config = deps.config()
  const recorded = recordedTargets(deps, input)
  const { guard, secret } = guardsOf({ tool, script, connection, config, workspace }, subject.targets, recorded)
  if (guard !== undefined) facts.guard = guard
  if (secret !== undefined) facts.secret = secret
  enforceBelow(workspace, rules, subject, spellings)
  const asked = guard === undefined ? [] : [...subject.targets, ...recorded]
  if (tool.effect === 'write') keepGuarded(workspace, asked)
  if (content) keepSecrets(workspace, config, asked)
  const decision = { ...decide(facts), ...(script === undefined ? {} : { classes: script.classes }) }
  const places = [...subject.targets, ...recorded].map(({ real }) => real)
  if (decision.kind !== 'ask') return { decision, places }
  const kinds = kindsOf(subject, script && prefixesOf(script))
  const question = { decision, kinds, definition: definitionHash(tool), places }
  if (deps.approvals.coveredBySession(session.ref, connection.policyVersion, question)) {
    const covered = decide({ ...facts, approvedForSession: true })
    if (covered.kind !== 'ask') return { decision: { ...decision, ...covered }, places }
  }
  if (script !== undefined && decision.by !== 'guard' && nobodyAndAllowed(deps)) {
    const by = 'commands.non_interactive'
    return { decision: { ...decision, kind: 'allow', by, reason: `Nobody can answer, and ${by} says allow.` } }
  }
  return { decision, question, places }
}

/** What `ask` becomes for commands where nobody can answer (CC-02); by default it is refused (AP-01). */
function nobodyAndAllowed({ approvals, config }: JudgeDeps): boolean {
  return approvals.consumers.count() === 0 && config().commands.non_interactive === 'allow'
}

/** By the names in its arguments alone: links that lead to a secret are found out where they are followed. */
function namesSecret(config: Config, { tool, args, workspace }: JudgeInput): boolean {
  if (!showsContent(tool)) return false
  const secrets = secretsOf(config)
  return (tool.targets?.(args) ?? []).some(({ path }) => secrets.has(resolve(workspace.root, path)))
}

/** What an undo would bring back is named by the session's record only; rules go by names that are given. */
function recordedTargets(deps: JudgeDeps, { tool, args, session }: JudgeInput): Target[] {
  if (tool.recorded === undefined) return []
  try {
    return tool.recorded(args, createSessionChanges(deps, session.ref)).map((path) => ({ given: path, real: path }))
  } catch (error) {
    // The tool itself refuses what is not recorded, and says why.
    if (error instanceof KikiError) return []
    throw error
  }
}

/** What the rules see of a call. */
function subjectOf(
  { tool, args, script, connection, session, workspace }: JudgeInput,
  spellings: (path: string) => boolean,
): Subject {
  return {
    ...(script === undefined ? {} : { command: commandMatcher(script) }),
    tool: tool.name,
    ...(tool.countsAs === undefined ? {} : { countsAs: tool.countsAs }),
    connection: { id: connection.id, name: connection.name },
    workspace: session.workspace,
    targets: (tool.targets?.(args) ?? []).map((named) => {
      const target = targetOf(workspace, named)
      return spellings(target.real) ? { ...target, anySpelling: true } : target
    }),
  }
}

function targetOf(
  workspace: Workspace,
  { path, tree, follow }: ReturnType<NonNullable<Tool['targets']>>[number],
): Target {
  const given = isAbsolute(path) ? resolve(path) : resolve(workspace.root, path)
  try {
    const real = resolvePath(workspace, path, follow === undefined ? {} : { follow }).path
    return tree === true ? { given, real, tree } : { given, real }
  } catch (error) {
    // The tool itself refuses what leads nowhere, and says why.
    if (error instanceof KikiError) return { given, real: given }
    throw error
  }
}

/** Deny rules hold where a path is used too: names that are swapped after the decision, files within a folder (FC-P09). */
function enforceBelow(
  workspace: Workspace,
  rules: readonly Rule[],
  subject: Subject,
  spellings: (path: string) => boolean,
): void {
  const denying = rules.filter(({ decision, argument }) => decision === 'deny' && argument !== undefined)
  if (denying.length === 0) return
  workspace.refuses = (path) => {
    const rule = deniesPath(denying, subject, path, spellings(path))
    if (rule === undefined) return undefined
    return new KikiError('permission_denied', `The rule deny ${rule.pattern} (${rule.from}) is about it.`, {
      hint: 'Only the owner can change it, in Kiki.',
      data: { setting: `rule ${rule.from}` },
    })
  }
}

/** Tells one definition of a tool from another: an approval for a session is for this one (GU-33). */
function definitionHash(tool: Omit<Tool, 'run'>): string {
  return sha256(canonicalJson(definitionOf(tool, true)))
}

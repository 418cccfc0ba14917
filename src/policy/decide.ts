import type { ErrorCode } from '../lib/errors.js'
import { type DecisionKind, type Effect, lesserMode, type Mode } from './modes.js'
import { findRules, type Rule, type Subject } from './rules.js'

/** What the standing policy came to for one call, and the setting that made it (GR-05). */
export interface Decision {
  kind: DecisionKind
  /** The row or setting: `connection.ceiling`, `session.mode`, `rule config.toml:12`, `commands.classes.destructive`, … */
  by: string
  /** For the person who reads it. */
  reason: string
  code?: ErrorCode
  /** Of a command (CC-03). */
  classes?: readonly string[]
  /** A command that runs without a sandbox, with the owner's own rights (SB-02). */
  unconfined?: true
}

export interface DecisionInput {
  tool: { name: string; effect: Effect }
  ceiling: Mode
  sessionMode: Mode
  /** A profile narrows, never widens (GR-06). */
  profileMode?: Mode
  /** Of `config.toml` and of the owner's answers, in no order: deny wins over ask, ask over allow (PO-03). */
  rules?: readonly Rule[]
  subject?: Subject
  /** Of a command; `decided` is `[commands.classes]` (CC-02). */
  classes?: { found: readonly string[]; decided: Readonly<Record<string, DecisionKind | undefined>> }
  /** Why a guard asks about what the call touches, whatever the mode (PA-05, PA-06). */
  guard?: string
  /** A file that looks like a secret and that the call names: never shown in read-only (PA-06). */
  secret?: string
  /** The owner approved this kind of call for the session (GU-33). */
  approvedForSession?: boolean
}

/**
 * PO-03, in its order; status and sharing were checked before. The lesser of ceiling, session mode and profile mode counts at
 * each call (PO-01).
 */
export function decide(input: DecisionInput): Decision {
  const { tool, guard } = input
  const { mode, by } = effectiveMode(input)
  if (mode === 'read-only' && tool.effect !== 'read' && !onlyReads(input)) {
    const reason = `${tool.name} has side effects, and ${by} is read-only.`
    return { kind: 'deny', by, reason, code: 'permission_denied' }
  }
  if (mode === 'read-only' && input.secret !== undefined) {
    const reason = `"${input.secret}" looks like a secret (permission.secret_files), and ${by} is read-only.`
    return { kind: 'deny', by: 'permission.secret_files', reason, code: 'permission_denied' }
  }
  const rule = (kind: DecisionKind) => ruleOf(input, kind)
  const standing = rule('deny') ?? classOf(input, 'deny')
  if (standing !== undefined) return standing
  if (guard !== undefined) return { kind: 'ask', by: 'guard', reason: guard }
  if (input.approvedForSession === true) {
    return { kind: 'allow', by: 'session approval', reason: 'The owner approved this kind of call for this session.' }
  }
  return rule('ask') ?? classOf(input, 'ask') ?? rule('allow') ?? classOf(input, 'allow') ?? byMode(tool, mode, by)
}

function byMode(tool: DecisionInput['tool'], mode: Mode, by: string): Decision {
  if (tool.effect === 'read') return { kind: 'allow', by: 'effect.read', reason: 'It only reads.' }
  switch (mode) {
    case 'read-only':
      return { kind: 'allow', by: 'commands.classes.read_only', reason: 'Every command in it only reads.' }
    case 'manual':
      return { kind: 'ask', by, reason: `${by} is manual: the owner is asked about every side effect.` }
    case 'auto-edit':
      return tool.effect === 'write'
        ? { kind: 'allow', by, reason: 'File changes inside the workspace run in auto-edit.' }
        : { kind: 'ask', by, reason: `${by} is auto-edit: the owner is asked about everything but file changes.` }
    case 'full':
      return { kind: 'allow', by, reason: 'Everything runs in full.' }
  }
}

function ruleOf({ rules = [], subject }: DecisionInput, kind: DecisionKind): Decision | undefined {
  if (subject === undefined) return undefined
  const [first, ...more] = findRules(rules, subject, kind)
  if (first === undefined) return undefined
  const named = [first, ...more].map((rule) => `${kind} ${rule.pattern} (${rule.from})`).join(' and ')
  const reason = more.length === 0 ? `The rule ${named} is about it.` : `The rules ${named} together are about it.`
  return { kind, by: `rule ${first.from}`, reason, ...(kind === 'deny' ? { code: 'permission_denied' as const } : {}) }
}

/** A class denies or asks if any of the command's is decided so; it allows only where all are. */
function classOf({ classes }: DecisionInput, kind: DecisionKind): Decision | undefined {
  if (classes === undefined || classes.found.length === 0) return undefined
  const { found, decided } = classes
  const of = found.filter((name) => decided[name] === kind)
  const [first] = of
  if (first === undefined || (kind === 'allow' && of.length < found.length)) return undefined
  const reason = `It is of class ${of.join(', ')}, and commands.classes says ${kind}.`
  const by = `commands.classes.${first}`
  return { kind, by, reason, ...(kind === 'deny' ? { code: 'permission_denied' as const } : {}) }
}

/** A read-only ceiling admits a script all of whose commands are `read_only` (CC-01). */
function onlyReads({ classes }: DecisionInput): boolean {
  return classes !== undefined && classes.found.length === 1 && classes.found[0] === 'read_only'
}

function effectiveMode({ ceiling, sessionMode, profileMode }: DecisionInput): { mode: Mode; by: string } {
  const mode = lesserMode(lesserMode(ceiling, sessionMode), profileMode ?? 'full')
  if (mode === ceiling) return { mode, by: 'connection.ceiling' }
  return { mode, by: mode === sessionMode ? 'session.mode' : 'profile.mode' }
}

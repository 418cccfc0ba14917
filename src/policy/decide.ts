import type { ErrorCode } from '../lib/errors.js'
import { type Effect, lesserMode, type Mode } from './modes.js'

/** What the standing policy came to for one call, and the setting that made it (GR-05). */
export interface Decision {
  kind: 'allow' | 'ask' | 'deny'
  /** The row or setting: `connection.ceiling`, `session.mode`, `profile.mode`, … */
  by: string
  /** For the person who reads it. */
  reason: string
  code?: ErrorCode
}

export interface DecisionInput {
  tool: { name: string; effect: Effect }
  ceiling: Mode
  sessionMode: Mode
  /** A profile narrows, never widens (GR-06). */
  profileMode?: Mode
}

/**
 * Order of PO-03 as far as it exists: sharing was checked before; ceiling `read-only`; mode.
 * The lesser of ceiling, session mode and profile mode counts at each call (PO-01).
 */
export function decide({ tool, ceiling, sessionMode, profileMode }: DecisionInput): Decision {
  if (tool.effect === 'read') return { kind: 'allow', by: 'effect.read', reason: 'It only reads.' }
  const { mode, by } = effectiveMode(ceiling, sessionMode, profileMode)
  switch (mode) {
    case 'read-only':
      return {
        kind: 'deny',
        by,
        code: 'permission_denied',
        reason: `${tool.name} has side effects, and ${by} is read-only.`,
      }
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

function effectiveMode(ceiling: Mode, sessionMode: Mode, profileMode: Mode | undefined): { mode: Mode; by: string } {
  const mode = lesserMode(lesserMode(ceiling, sessionMode), profileMode ?? 'full')
  if (mode === ceiling) return { mode, by: 'connection.ceiling' }
  return { mode, by: mode === sessionMode ? 'session.mode' : 'profile.mode' }
}

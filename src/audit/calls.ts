import type { KikiError } from '../lib/errors.js'
import { isObject } from '../lib/json.js'
import type { Ending, NewOperation } from '../store/operations.js'
import type { Entry } from './chain.js'

/** What an operation's entry needs of its row. */
export type CalledRow = Pick<
  NewOperation,
  | 'id'
  | 'connection_id'
  | 'session_ref'
  | 'parent_id'
  | 'tool'
  | 'fingerprint'
  | 'decision'
  | 'approval_id'
  | 'accepted_at'
  | 'started_at'
>

/** A call that was refused before it became an operation. */
export interface Refusal {
  connectionId: string
  /** Of a session that was found; never what a client sent in place of one. */
  sessionRef?: string | undefined
  /** Of a tool that there is; never what a client sent in place of one. */
  tool?: string | undefined
  argumentHash?: string | undefined
  error: KikiError
}

/** The entry of an operation that is over; `action` is `call`, by its connection or the owner. */
export function callEntry(row: CalledRow, ending: Pick<Ending, 'status' | 'ended_at' | 'error_code'>): Entry {
  const { kind, by } = decisionOf(row.decision)
  const detail = {
    ...(row.parent_id === null ? {} : { parent: row.parent_id }),
    ...(row.approval_id === null ? {} : { approval: row.approval_id }),
  }
  return {
    actor: by === 'owner' ? 'owner' : row.connection_id,
    action: 'call',
    connection: row.connection_id,
    session: row.session_ref,
    operation: row.id,
    tool: row.tool,
    argumentHash: row.fingerprint,
    decision: kind,
    rule: by,
    status: ending.status,
    errorCode: ending.error_code,
    durationMs: ending.ended_at - (row.started_at ?? row.accepted_at),
    ...(Object.keys(detail).length === 0 ? {} : { detail }),
  }
}

/** @param leftOut refusals of this connection that were only counted since its last entry. */
export function refusalEntry({ connectionId, sessionRef, tool, argumentHash, error }: Refusal, leftOut: number): Entry {
  const setting = error.data?.setting
  return {
    actor: connectionId,
    action: 'refused',
    connection: connectionId,
    session: sessionRef ?? null,
    tool: tool ?? null,
    argumentHash: argumentHash ?? null,
    decision: 'deny',
    rule: typeof setting === 'string' ? setting : null,
    status: 'refused',
    errorCode: error.code,
    ...(leftOut === 0 ? {} : { detail: { refusals_not_written: leftOut } }),
  }
}

/** A row's decision is written by Kiki; one that cannot be read costs its entry nothing else. */
function decisionOf(json: string): { kind: string | null; by: string | null } {
  let decision: unknown
  try {
    decision = JSON.parse(json)
  } catch {
    decision = undefined
  }
  const field = (name: string) => {
    const value = isObject(decision) ? decision[name] : undefined
    return typeof value === 'string' ? value : null
  }
  return { kind: field('kind'), by: field('by') }
}

import type { Connection } from '../grants/connections.js'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { canonicalJson, sha256 } from '../lib/json.js'
import type { Decision } from '../policy/decide.js'
import type { Session } from '../sessions/sessions.js'
import type { NewOperation, OperationRow } from '../store/operations.js'
import type { Store } from '../store/store.js'
import type { Lane } from './slots.js'

/** What one call asks for, after it was parsed, resolved and allowed. */
export interface ClaimRequest {
  connection: Connection
  session: Pick<Session, 'ref'>
  /** Canonical name. */
  tool: string
  effect: string
  /** Without `_kiki` and `_meta`. */
  args: unknown
  key: string | undefined
  client: { name: string; version: string } | undefined
  decision: Decision
  /** The owner's own call: neither pause nor revoke, and no closed session, keeps the owner from it. */
  byOwner?: boolean
  /** What it is counted among while it runs; without any it never waits for its turn. */
  lanes: readonly Lane[]
  parentId?: string
  /**
   * Where the owner must be asked: makes the question of the new row within the claiming transaction and returns its id.
   * @throws KikiError `approval_unavailable`.
   */
  ask?: (row: NewOperation) => string
}

/** RFC 8785 form of the arguments and the SHA-256 that tells one call from another (GU-10). */
export function fingerprint(tool: string, args: unknown): { canonical: string; hash: string } {
  const canonical = canonicalJson(args)
  return { canonical, hash: sha256(`${tool}\n${canonical}`) }
}

/** Unfinished side effects of one connection (GU-63). */
export const MAX_UNFINISHED = 50

/** Within the claiming transaction. @throws KikiError `rate_limited`. */
export function mustHaveRoom(store: Store, row: Pick<NewOperation, 'connection_id' | 'effect'>): void {
  if (row.effect === 'read' || store.operations.countUnfinished(row.connection_id) < MAX_UNFINISHED) return
  throw new KikiError(
    'rate_limited',
    `This connection has ${MAX_UNFINISHED} side effects that are not over; nothing ran.`,
    {
      hint: 'Wait for some of them with kiki_operation {"action":"wait"}, or cancel them.',
      data: { setting: 'unfinished side effects', limit: MAX_UNFINISHED },
    },
  )
}

/** The row that a claim would insert; `running` unless it must wait for its turn, or for the owner. */
export function newRow(
  request: ClaimRequest,
  now: number,
  bootId: string,
  status: 'running' | 'accepted' | 'waiting_approval',
): NewOperation {
  const { canonical, hash } = fingerprint(request.tool, request.args)
  return {
    id: newId('op', now),
    connection_id: request.connection.id,
    session_ref: request.session.ref,
    idempotency_key: request.key ?? null,
    parent_id: request.parentId ?? null,
    client: request.client === undefined ? null : JSON.stringify(request.client),
    tool: request.tool,
    effect: request.effect,
    arguments: canonical,
    fingerprint: hash,
    policy_version: request.connection.policyVersion,
    decision: JSON.stringify({
      kind: request.decision.kind,
      by: request.decision.by,
      classes: request.decision.classes,
      unconfined: request.decision.unconfined,
    }),
    approval_id: null,
    status,
    accepted_at: now,
    started_at: status === 'running' ? now : null,
    ended_at: null,
    boot_id: status === 'running' ? bootId : null,
    attempt: status === 'running' ? 1 : 0,
    error_code: null,
    effects_possible: 0,
    result: null,
    result_chars: 0,
  }
}

/**
 * Inside the claiming transaction: the earlier operation of this key, if there is one.
 * @throws KikiError `idempotency_conflict` for another call, `idempotency_expired` for a key that retention removed.
 */
export function earlier(store: Store, row: NewOperation): OperationRow | undefined {
  const key = row.idempotency_key
  if (key === null) return undefined
  const found = store.operations.byKey(row.connection_id, row.session_ref, key)
  if (found !== undefined) {
    if (found.fingerprint === row.fingerprint) return found
    throw new KikiError(
      'idempotency_conflict',
      `This idempotency key was used for another call (${found.tool}${found.tool === row.tool ? ' with other arguments' : ''}); nothing ran.`,
      { hint: 'Use a new key for a new call; repeat a key only to retry the very same call.' },
    )
  }
  if (store.keys.isBuried(row.connection_id, row.session_ref, key)) {
    throw new KikiError(
      'idempotency_expired',
      'The operation of this idempotency key is older than the retention time; nothing ran.',
      {
        hint: 'Inspect the target first; if the call must run again, use a new key.',
      },
    )
  }
  return undefined
}

/**
 * Inside a transaction: everything that the decision rests on still holds (GU-02).
 * @throws KikiError when the connection was paused, revoked or changed, or the session closed.
 */
export function recheck(
  store: Store,
  row: Pick<NewOperation, 'connection_id' | 'session_ref' | 'policy_version'>,
): void {
  const connection = store.connections.get(row.connection_id)
  if (connection === undefined || connection.status === 'revoked') throw connectionRevoked()
  if (connection.status === 'paused') throw connectionPaused()
  if (connection.policy_version !== row.policy_version) {
    throw new KikiError('cancelled', "The connection's access policy changed before this call began; nothing ran.", {
      hint: 'Call again: the new policy decides.',
    })
  }
  if (store.sessions.get(row.session_ref)?.status !== 'open') {
    throw new KikiError('session_closed', 'The session was closed before this call began; nothing ran.', {
      hint: 'Call kiki_session with {"action":"list"} for the open ones.',
    })
  }
}

/** Within the transaction that begins it: the owner's yes to this very operation under this very policy is on disk (GU-02, AP-05). */
export function mustBeApproved(store: Store, row: Pick<NewOperation, 'id' | 'approval_id' | 'policy_version'>): void {
  if (row.approval_id === null) return
  const approval = store.approvals.get(row.approval_id)
  const stands = approval?.answer === 'approved' && approval.operation_id === row.id
  if (stands && approval.policy_version === row.policy_version) return
  throw new KikiError('cancelled', 'It is not approved; nothing ran.', {
    hint: 'Call again: the owner is asked again.',
  })
}

export function connectionPaused(): KikiError {
  return new KikiError('connection_paused', 'The owner has paused this connection.', {
    hint: 'Ask the user to resume it in Kiki, then call again.',
    data: { setting: 'connection.status' },
  })
}

export function connectionRevoked(): KikiError {
  return new KikiError('connection_revoked', 'The owner has revoked this connection.', {
    hint: 'It cannot be used again; the user can make a new one in Kiki.',
    data: { setting: 'connection.status' },
  })
}

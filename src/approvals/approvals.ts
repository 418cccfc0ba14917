import type { Audit } from '../audit/audit.js'
import type { Events } from '../events/events.js'
import type { StandingRules } from '../grants/standing-rules.js'
import type { Clock } from '../lib/clock.js'
import { createSavedDeadlines } from '../lib/deadline.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { Log } from '../lib/log.js'
import { recheck } from '../operations/claim.js'
import { endRow } from '../operations/end-row.js'
import type { Operations } from '../operations/operations.js'
import { encodeOutcome } from '../operations/outcome.js'
import { errorText } from '../operations/present.js'
import type { Decision } from '../policy/decide.js'
import type { ApprovalRow, ApprovalScope, Asked } from '../store/approvals.js'
import type { NewOperation, OperationRow } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { createConsumers } from './consumers.js'
import type { Kind } from './kinds.js'

/** What the gate hands over when a call must be asked about. */
export interface Question {
  decision: Decision
  kinds: readonly Kind[]
  /** Of the tool, as clients see it (GU-33). */
  definition: string
  /** Where the places that the arguments name really led when it was asked. */
  places: readonly string[]
}

export interface AnswerInput {
  answer: 'approved' | 'denied'
  /** Of an approval; `once` where nothing is said. */
  scope?: ApprovalScope
  /** To the client, of a denial (AP-04). */
  message?: string
  by: 'owner' | 'expiry'
}

export interface Answered {
  approval: ApprovalRow
  operation: OperationRow
  /** False when somebody had answered, or the operation had ended, before. */
  changed: boolean
}

export interface ApprovalsDeps {
  store: Store
  audit: Pick<Audit, 'recordCall'>
  clock: Clock
  events: Events
  log: Log
  operations: Operations
  rules: StandingRules
  /** Milliseconds until an open question is denied; undefined for never. */
  expiry: () => number | undefined
  /** Runs an operation that may begin: the lower half of the gate. */
  dispatch: (row: OperationRow) => Promise<void>
}

/** Longest time between two looks for expired questions, in milliseconds: no timer has to hold longer (GU-44). */
const LOOK_EVERY_MS = 10_000

export type Approvals = ReturnType<typeof createApprovals>

/** Asking the owner, and what the answer brings about (AP-01 to AP-06). */
export function createApprovals(deps: ApprovalsDeps) {
  const { store, clock, events, operations } = deps
  const consumers = createConsumers()
  /** A wall clock that is set back keeps no question open (GU-44). */
  const deadlines = createSavedDeadlines(clock)

  const changed = (approval: ApprovalRow, state: string, { connection_id, session_ref }: OperationRow) =>
    events.emit('approval.changed', {
      approvalId: approval.id,
      operationId: approval.operation_id,
      connectionId: connection_id,
      sessionRef: session_ref,
      state,
    })

  /** Within the claiming transaction: the open question of a new operation. @throws KikiError `approval_unavailable` (AP-01). */
  function ask(row: NewOperation, { decision, kinds, definition, places }: Question): ApprovalRow {
    if (consumers.count() === 0) throw unavailable(decision)
    const expiry = deps.expiry()
    const now = clock.now()
    const id = newId('apr', now)
    store.approvals.insert({
      id,
      operation_id: row.id,
      decision: JSON.stringify({ by: decision.by, reason: decision.reason }),
      kinds: JSON.stringify({ kinds, definition, places }),
      policy_version: row.policy_version,
      asked_at: now,
      expires_at: expiry === undefined ? null : now + expiry,
    })
    if (expiry !== undefined) deadlines.see(id, now + expiry)
    return store.approvals.get(id) as ApprovalRow
  }

  function require(id: string): Asked {
    const approval = store.approvals.get(id)
    const operation = approval && store.operations.get(approval.operation_id)
    if (approval === undefined || operation === undefined) {
      throw new KikiError('not_found', `There is no approval ${id}.`, {
        hint: 'List the open ones with `kiki approvals list`.',
      })
    }
    return { approval, operation }
  }

  /** One transaction decides; whoever comes second changes nothing and is told so (AP-05, AP-06). */
  async function answer(id: string, input: AnswerInput): Promise<Answered> {
    const done = await store.commits.vital(() => {
      const asked = require(id)
      if (asked.approval.answer !== null || asked.operation.status !== 'waiting_approval')
        return { ...asked, changed: false }
      if (input.answer === 'approved') approve(asked, input)
      else endRow(deps, asked.operation, denial(input, clock.now()))
      store.approvals.answer(id, {
        answer: input.answer,
        scope: input.answer === 'approved' ? (input.scope ?? 'once') : null,
        message: input.message ?? null,
        answered_by: input.by,
        answered_at: clock.now(),
      })
      return { ...require(id), changed: true }
    })
    if (!done.changed) return done
    deps.rules.refresh()
    if (done.operation.status === 'accepted') {
      deps
        .dispatch(done.operation)
        .catch((error: unknown) =>
          deps.log.error(
            { operation: done.operation.id, error: messageOf(error) },
            'an approved operation did not run',
          ),
        )
    } else operations.settle(done.operation.id)
    await changed(done.approval, input.answer, done.operation)
    return done
  }

  function approve({ approval, operation }: Asked, { scope }: AnswerInput): void {
    recheck(store, operation)
    if (approval.policy_version !== operation.policy_version)
      throw new Error('an approval is for its own policy version')
    store.operations.admit(operation.id)
    const { kinds, definition } = JSON.parse(approval.kinds) as { kinds: Kind[]; definition: string }
    if (scope === undefined || scope === 'once') return
    if (kinds.length === 0) {
      throw new KikiError(
        'invalid_arguments',
        'This call cannot be told apart from others: it can only be approved once.',
        {
          hint: 'Approve it once, or deny it.',
        },
      )
    }
    const { session_ref, policy_version } = operation
    for (const { key, pattern } of kinds) {
      if (scope === 'session')
        store.approvals.allowKind({ session_ref, kind: key, definition, policy_version, now: clock.now() })
      else deps.rules.insert({ decision: 'allow', pattern, ...placeOf(operation) })
    }
  }

  function placeOf(operation: OperationRow): { connection: string; workspace: string } {
    const workspace = store.sessions.get(operation.session_ref)?.workspace
    if (workspace === undefined) throw new Error('an operation that waits has a session')
    return { connection: operation.connection_id, workspace }
  }

  async function expire(): Promise<void> {
    const waiting = store.approvals.waiting()
    deadlines.keep(new Set(waiting.map(({ id }) => id)))
    for (const approval of waiting) {
      if (approval.expires_at === null || !deadlines.hasPassed(approval.id, approval.expires_at)) continue
      await answer(approval.id, { answer: 'denied', by: 'expiry', message: 'Nobody answered in time.' })
    }
  }

  return {
    consumers,
    ask,
    answer,
    require,
    /** Real paths that an approved operation was asked about (AP-05); undefined for one that was not asked about. */
    placesOf(row: Pick<OperationRow, 'approval_id'>): readonly string[] | undefined {
      const approval = row.approval_id === null ? undefined : store.approvals.get(row.approval_id)
      return approval && (JSON.parse(approval.kinds) as { places: string[] }).places
    },
    /** Open questions, oldest first. */
    waiting: (): Asked[] =>
      store.approvals.waiting().map((approval) => ({ approval, operation: require(approval.id).operation })),
    /** Whether every kind of a call was approved for its session, for this definition and policy version (GU-33). */
    coveredBySession(
      sessionRef: string,
      policyVersion: number,
      { kinds, definition }: Pick<Question, 'kinds' | 'definition'>,
    ): boolean {
      const row = { session_ref: sessionRef, definition, policy_version: policyVersion }
      return kinds.length > 0 && kinds.every(({ key }) => store.approvals.allowsKind({ ...row, kind: key }))
    },
    /** Tells that a question is there, once it is committed. */
    asked: (row: Pick<OperationRow, 'approval_id'>): void => {
      if (row.approval_id === null) return
      const { approval, operation } = require(row.approval_id)
      void changed(approval, 'asked', operation)
    },
    /** Denies what is past its time from now on; returns the function that ends this. */
    keepExpiring(): () => void {
      const timer = setInterval(() => {
        expire().catch((error: unknown) => deps.log.error({ error: messageOf(error) }, 'approvals could not expire'))
      }, LOOK_EVERY_MS)
      timer.unref()
      return () => clearInterval(timer)
    },
    expire,
  }
}

function unavailable({ reason, by }: Decision): KikiError {
  return new KikiError('approval_unavailable', `The owner must approve this, and nobody can be asked now. ${reason}`, {
    hint: 'Nothing was started. Ask the user to run `kiki approvals watch`, then call again.',
    data: { setting: by },
  })
}

function denial({ message, by }: AnswerInput, now: number) {
  const said = message === undefined ? '' : by === 'owner' ? ` They say: “${message}”` : ` ${message}`
  const error = {
    code: 'approval_denied' as const,
    message: `The owner did not approve it; nothing ran.${said}`,
    hint: 'Do not try it again in another way; ask the user how to go on.',
  }
  const content = [{ type: 'text' as const, text: errorText(error) }]
  const { result, chars } = encodeOutcome({ status: 'cancelled', content, error })
  return {
    status: 'cancelled' as const,
    ended_at: now,
    error_code: 'approval_denied',
    effects_possible: 0,
    result,
    result_chars: chars,
  }
}

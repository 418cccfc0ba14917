import type { Events } from '../events/events.js'
import type { Connection } from '../grants/connections.js'
import { settledWithin } from '../lib/async.js'
import type { Clock } from '../lib/clock.js'
import type { Reply } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import { type OperationRow, TERMINAL, type TerminalStatus } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { type ClaimRequest, earlier, newRow, recheck } from './claim.js'
import { finish } from './finish.js'
import { createLive, type Live } from './live.js'
import { decodeOutcome, type Outcome } from './outcome.js'
import { ended, type InlineLimits, receipt, replayed } from './present.js'
import { createSlots } from './slots.js'

/** Longest time that a cancel waits for the work to be seen ending (OP-11). */
const CANCEL_MS = 2000

export type Claim = { kind: 'new'; live: Live } | { kind: 'joined'; live: Live } | { kind: 'over'; row: OperationRow }

/** The tool's own code, called once; it fails by throwing. */
export type Work = (live: Live) => Promise<Pick<Outcome, 'content' | 'facts'>>

export type Operations = ReturnType<typeof createOperations>

export interface OperationsDeps {
  store: Store
  clock: Clock
  events: Events
  log: Log
  bootId: string
}

export function createOperations(deps: OperationsDeps) {
  const { store, clock, events, bootId } = deps
  const lives = new Map<string, Live>()
  const slots = createSlots()

  function changed(row: { id: string; connection_id: string; session_ref: string }, status: string): void {
    void events.emit('operation.changed', {
      operationId: row.id,
      connectionId: row.connection_id,
      sessionRef: row.session_ref,
      status,
    })
  }

  /**
   * Makes the operation of a call, or finds the one that its key already has (OP-01, OP-02). A side effect, and any call
   * with a key, is on disk when this returns; a plain read is recorded when it ends (GU-08).
   */
  async function claim(request: ClaimRequest): Promise<Claim> {
    const slot = slots.tryTake(request.connection.id, request.connection.grant.concurrency)
    const row = newRow(request, clock.now(), bootId, slot === undefined ? 'accepted' : 'running')
    const live = createLive(row, limitsOf(request.connection), false)
    live.release = slot
    if (request.effect === 'read' && request.key === undefined) {
      lives.set(live.id, live)
      return { kind: 'new', live }
    }
    try {
      const before = await store.commits.durable(() => {
        const found = earlier(store, row)
        if (found !== undefined) return found
        recheck(store, row)
        store.operations.insert(row)
        live.recorded = true
        lives.set(live.id, live)
        return undefined
      })
      if (before === undefined) {
        changed(row, row.status)
        return { kind: 'new', live }
      }
      slot?.()
      const running = lives.get(before.id)
      return running === undefined
        ? { kind: 'over', row: store.operations.get(before.id) ?? before }
        : { kind: 'joined', live: running }
    } catch (error) {
      slot?.()
      lives.delete(live.id)
      throw error
    }
  }

  /** Carries an operation out, once, and commits how it ended before anyone is told (GU-03). Never rejects. */
  async function run(live: Live, cap: number | null, work: Work): Promise<void> {
    const release = live.release ?? (await slots.take(live.connectionId, cap, live.controller.signal))
    try {
      const finished = await finish(deps, live, work)
      lives.delete(live.id)
      live.ended.resolve(finished.outcome)
      if (finished.recorded) changed(live.row, finished.outcome.status)
    } finally {
      release()
    }
  }

  /** Writes the record of a read that is asked about before its end. */
  async function reveal(live: Live): Promise<void> {
    if (live.recorded) return
    live.recorded = true
    await store.commits.quick(() => store.operations.insert(live.row))
    changed(live.row, live.row.status)
  }

  /** The reply to a call: its result if it ends within `waitMs`, else a receipt (OP-08). */
  async function answer(live: Live, waitMs: number, limits: InlineLimits, signal?: AbortSignal): Promise<Reply> {
    const facts = { operationId: live.id, sessionRef: live.sessionRef }
    if (await settledWithin(live.ended.promise, waitMs, signal)) return ended(facts, await live.ended.promise, limits)
    await reveal(live)
    const status = store.operations.get(live.id)?.status ?? live.row.status
    if (isTerminal(status)) return ended(facts, await live.ended.promise, limits)
    return receipt({ ...facts, status, tool: live.tool, createdAt: live.acceptedAt, outputSoFar: live.lastProgress })
  }

  /** The saved outcome of an operation that is over. */
  function outcomeOf(row: OperationRow): Outcome {
    if (!isTerminal(row.status)) throw new Error(`operation ${row.id} is not over`)
    if (row.result === null) return withoutResult(row, row.status)
    return decodeOutcome(store, {
      id: row.id,
      status: row.status,
      result: row.result,
      effects_possible: row.effects_possible,
    })
  }

  /** Stops the work. A finished operation stays as it is; work whose end is not seen in time is `outcome_unknown` (OP-11). */
  async function cancel(id: string, reason: string): Promise<OperationRow | undefined> {
    const live = lives.get(id)
    if (live !== undefined) {
      live.cancelRequested = true
      await reveal(live)
      live.controller.abort(new KikiError('cancelled', reason))
      if (!(await settledWithin(live.ended.promise, CANCEL_MS))) await giveUp(deps, live, lives)
    } else {
      await endUnfinished(deps, id, { status: 'cancelled', code: 'cancelled', effects: false })
    }
    return store.operations.get(id)
  }

  return {
    claim,
    run,
    answer,
    outcomeOf,
    cancel,
    live: (id: string): Live | undefined => lives.get(id),
    /** Every operation that this host carries out now. */
    lives: (): Live[] => [...lives.values()],

    /** The reply of a repeated key whose operation is over (OP-02, OP-06). */
    replay(row: OperationRow, limits: InlineLimits): Reply {
      return replayed(row, ended({ operationId: row.id, sessionRef: row.session_ref }, outcomeOf(row), limits))
    },

    /** One operation of this connection, whether or not its record is written yet. @throws KikiError `operation_unavailable`. */
    async find(connectionId: string, id: string): Promise<OperationRow> {
      const live = lives.get(id)
      if (live !== undefined) await reveal(live)
      else store.commits.flush()
      const row = store.operations.get(id)
      if (row === undefined || row.connection_id !== connectionId) {
        throw new KikiError('operation_unavailable', 'There is no such operation for this connection.', {
          hint: 'Call kiki_operation with {"action":"list"} for the recent ones of a session.',
        })
      }
      return row
    },

    /** Writes the records that are still in memory, so that a list shows everything. */
    async settleRecords(): Promise<void> {
      await Promise.all([...lives.values()].map(reveal))
      store.commits.flush()
    },

    /** Takes an `accepted` row of an earlier host into this one (GU-05). */
    adopt(row: OperationRow, limits: InlineLimits): Live {
      const live = createLive(row, limits, true)
      lives.set(row.id, live)
      return live
    },
  }
}

export function limitsOf(connection: Connection): InlineLimits {
  return { text: connection.grant.inline_text_limit, media: connection.grant.inline_media_limit }
}

export function isTerminal(status: string): status is TerminalStatus {
  return TERMINAL.some((terminal) => terminal === status)
}

/** An ending without the work's own answer. */
async function endUnfinished(
  { store, clock }: OperationsDeps,
  id: string,
  how: { status: TerminalStatus; code: string; effects: boolean },
): Promise<void> {
  await store.commits.durable(() =>
    store.operations.end(id, {
      status: how.status,
      ended_at: clock.now(),
      error_code: how.code,
      effects_possible: how.effects ? 1 : 0,
      result: null,
      result_chars: 0,
    }),
  )
}

async function giveUp(deps: OperationsDeps, live: Live, lives: Map<string, Live>): Promise<void> {
  await endUnfinished(deps, live.id, { status: 'outcome_unknown', code: 'outcome_unknown', effects: live.began })
  const row = deps.store.operations.get(live.id)
  lives.delete(live.id)
  if (row !== undefined && isTerminal(row.status)) live.ended.resolve(withoutResult(row, row.status))
}

function withoutResult(row: OperationRow, status: TerminalStatus): Outcome {
  const started =
    row.started_at === null ? 'before it began' : `after it had begun at ${new Date(row.started_at).toISOString()}`
  switch (status) {
    case 'outcome_unknown': {
      const message = `Kiki's host stopped while ${row.tool} was running (accepted ${new Date(row.accepted_at).toISOString()}): whether it took effect is not known.`
      return failure(
        row,
        status,
        'outcome_unknown',
        message,
        'Inspect the target first. It never runs again by itself; if it must, use a new key.',
      )
    }
    case 'cancelled':
      return failure(row, status, 'cancelled', `${row.tool} was cancelled ${started}.`, undefined)
    default:
      return failure(
        row,
        status,
        'result_missing',
        `The result of ${row.tool} was not saved; only side effects, keyed calls and cut results are.`,
        undefined,
      )
  }
}

function failure(
  row: OperationRow,
  status: TerminalStatus,
  code: KikiError['code'],
  message: string,
  hint: string | undefined,
): Outcome {
  const error = hint === undefined ? { code, message } : { code, message, hint }
  const outcome: Outcome = {
    status,
    content: [{ type: 'text', text: `${code}: ${message}${hint === undefined ? '' : ` ${hint}`}` }],
    error,
  }
  if (row.effects_possible === 1) outcome.effectsPossible = true
  return outcome
}

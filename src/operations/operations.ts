import type { Audit } from '../audit/audit.js'
import type { Events } from '../events/events.js'
import type { Connection } from '../grants/connections.js'
import { settledWithin } from '../lib/async.js'
import type { Clock } from '../lib/clock.js'
import type { Reply } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import { type OperationRow, TERMINAL, type TerminalStatus } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { type ClaimRequest, earlier, mustHaveRoom, newRow, recheck } from './claim.js'
import { endIdle, endUnseen, type Reader, withoutResult } from './endings.js'
import { finish } from './finish.js'
import { createLive, type Live, type LiveTerms } from './live.js'
import { decodeOutcome, type Outcome, type ResultSources } from './outcome.js'
import { ended, type InlineLimits, receipt, replayed } from './present.js'
import { reportProgress } from './progress.js'
import { createSlots } from './slots.js'

/** Longest time that a cancel waits for the work to be seen ending (OP-11). */
const CANCEL_MS = 2000

export type Claim = { kind: 'new'; live: Live } | { kind: 'joined'; live: Live } | { kind: 'over'; row: OperationRow }

/** Who waits for an answer. */
export interface Waiter {
  /** Aborted when nobody waits any more. */
  signal?: AbortSignal
  /** Gets lines for a person. */
  onProgress?: (message: string) => void
}

/** The tool's own code, called once; it fails by throwing, or with `failure` where there is something to show beside why. */
export type Work = (live: Live) => Promise<Pick<Outcome, 'content' | 'facts'> & { failure?: KikiError }>

export type Operations = ReturnType<typeof createOperations>

export interface OperationsDeps {
  store: Store
  audit: Pick<Audit, 'recordCall'>
  clock: Clock
  events: Events
  log: Log
  bootId: string
  outputs: ResultSources['outputs']
}

export function createOperations(deps: OperationsDeps) {
  const { store, clock, events, bootId } = deps
  const lives = new Map<string, Live>()
  const sources: ResultSources = { results: store.results, outputs: deps.outputs }
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
    // What waits for the owner holds no slot meanwhile.
    const slot = request.ask === undefined ? slots.tryTake(request.lanes) : undefined
    const status = request.ask !== undefined ? 'waiting_approval' : slot === undefined ? 'accepted' : 'running'
    const row = newRow(request, clock.now(), bootId, status)
    const live = createLive(row, { limits: limitsOf(request.connection), lanes: request.lanes }, false)
    live.release = slot
    if (request.effect === 'read' && request.key === undefined && request.ask === undefined) {
      lives.set(live.id, live)
      return { kind: 'new', live }
    }
    try {
      const before = await store.commits.durable(() => {
        const found = earlier(store, row)
        if (found !== undefined) return found
        if (request.byOwner !== true) {
          recheck(store, row)
          mustHaveRoom(store, row)
        }
        store.operations.insert(row)
        if (request.ask !== undefined) {
          row.approval_id = request.ask(row)
          store.operations.setApproval(row.id, row.approval_id)
        }
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
  async function run(live: Live, work: Work): Promise<void> {
    live.waiting = false
    const release = live.release ?? (await slots.take(live.lanes, live.controller.signal))
    try {
      const finished = await finish(deps, live, work)
      // One whose row could not be ended is remembered here: its row says `running` until the next start.
      if (finished.recorded || !live.recorded) lives.delete(live.id)
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
    try {
      await store.commits.quick(() => store.operations.insert(live.row))
    } catch (error) {
      live.recorded = false
      throw error
    }
    changed(live.row, live.row.status)
  }

  /** The row as it stands, what waits to be written included. */
  function recordOf(id: string): OperationRow | undefined {
    const row = store.operations.get(id)
    if (row !== undefined && isTerminal(row.status)) return row
    store.commits.flush()
    return store.operations.get(id)
  }

  /** The reply to a call: its result if it ends within `waitMs`, else a receipt (OP-08); progress meanwhile (OP-09). */
  async function answer(live: Live, waitMs: number, limits: InlineLimits, waiter: Waiter = {}): Promise<Reply> {
    const facts = { operationId: live.id, sessionRef: live.sessionRef }
    const quiet = reportProgress(live, waiter.onProgress)
    const inTime = await settledWithin(live.ended.promise, waitMs, waiter.signal)
    quiet()
    if (inTime) return ended(facts, await live.ended.promise, limits)
    await reveal(live)
    const status = recordOf(live.id)?.status ?? live.row.status
    if (isTerminal(status)) return ended(facts, await live.ended.promise, limits)
    return receipt({ ...facts, status, tool: live.tool, createdAt: live.acceptedAt, outputSoFar: live.lastProgress })
  }

  /** The saved outcome of an operation that is over; what there is to say without one is said to its reader. */
  function outcomeOf(row: OperationRow, reader: Reader = 'client'): Outcome {
    if (!isTerminal(row.status)) throw new Error(`operation ${row.id} is not over`)
    if (row.result === null) return withoutResult(row, row.status, reader)
    return decodeOutcome(sources, {
      id: row.id,
      status: row.status,
      result: row.result,
      effects_possible: row.effects_possible,
    })
  }

  /** Stops the work. A finished operation stays as it is; work whose end is not seen in time is `outcome_unknown` (OP-11). */
  async function cancel(id: string, reason: string): Promise<OperationRow | undefined> {
    const live = lives.get(id)
    if (live?.waiting === true) {
      await endIdle(deps, id)
      settle(id)
    } else if (live !== undefined) {
      live.cancelRequested = true
      await reveal(live)
      live.controller.abort(new KikiError('cancelled', reason))
      if (!(await settledWithin(live.ended.promise, CANCEL_MS))) await giveUp(live)
    } else {
      await endIdle(deps, id)
    }
    return recordOf(id)
  }

  async function giveUp(live: Live): Promise<void> {
    await endUnseen(deps, live, CANCEL_MS / 1000)
    settle(live.id)
  }

  /** Lets whoever waits for an operation know how its row has ended, where nobody carries it out (any more). */
  function settle(id: string): void {
    const row = store.operations.get(id)
    if (row === undefined || !isTerminal(row.status)) return
    const live = lives.get(id)
    lives.delete(id)
    live?.ended.resolve(outcomeOf(row))
    changed(row, row.status)
  }

  return {
    sources,
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
      const row = recordOf(id)
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

    settle,

    /** The row that waited for its turn or for the owner, here or in an earlier host (GU-05), with whoever waits for it. */
    adopt(row: OperationRow, terms: LiveTerms): Live {
      const live = lives.get(row.id) ?? createLive(row, terms, true)
      live.row = row
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

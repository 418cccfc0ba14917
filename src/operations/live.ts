import { type Deferred, deferred } from '../lib/async.js'
import type { NewOperation } from '../store/operations.js'
import type { Journal } from '../workspace/journal.js'
import type { Outcome } from './outcome.js'
import type { InlineLimits } from './present.js'
import type { Lane } from './slots.js'

/** An operation that this host is carrying out. */
export interface Live {
  id: string
  connectionId: string
  sessionRef: string
  tool: string
  effect: string
  key: string | null
  acceptedAt: number
  /** What is answered inline; a read's result is saved only if it passes them. */
  limits: InlineLimits
  lanes: readonly Lane[]
  /** Gives back the slot that was taken when the call was claimed. */
  release: (() => void) | undefined
  /** What the row is or, for a read that nobody asked about yet, would be (GU-08). */
  row: NewOperation
  /** False for a read whose record is written only when it ends. */
  recorded: boolean
  /** True once the tool's own code has been called. */
  began: boolean
  /** Nobody carries it out yet: it waits for the owner's approval. */
  waiting: boolean
  cancelRequested: boolean
  controller: AbortController
  /** Resolves once the outcome is committed; never rejects. */
  ended: Deferred<Outcome>
  /** What the work keeps of files before it changes them; its records are written with the outcome. */
  journal: Journal | undefined
  lastProgress: string
  listeners: Set<(message: string) => void>
}

export interface LiveTerms {
  limits: InlineLimits
  lanes: readonly Lane[]
}

export function createLive(row: NewOperation, { limits, lanes }: LiveTerms, recorded: boolean): Live {
  return {
    id: row.id,
    connectionId: row.connection_id,
    sessionRef: row.session_ref,
    tool: row.tool,
    effect: row.effect,
    key: row.idempotency_key,
    acceptedAt: row.accepted_at,
    limits,
    lanes,
    release: undefined,
    row,
    recorded,
    began: false,
    waiting: row.status === 'waiting_approval',
    cancelRequested: false,
    controller: new AbortController(),
    ended: deferred(),
    journal: undefined,
    lastProgress: '',
    listeners: new Set(),
  }
}

export function tellProgress(live: Live, message: string): void {
  live.lastProgress = message
  for (const listener of live.listeners) listener(message)
}

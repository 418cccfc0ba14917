import { KikiError } from '../lib/errors.js'
import type { ChangedOperationRow } from '../store/changes.js'
import type { OperationStatus } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { type ChangeRecord, journalContent } from '../workspace/journal.js'
import type { PastChange } from '../workspace/undo-plan.js'
import { isTerminal } from './operations.js'

/** An operation of the session that changed files, or was about to. */
export interface ChangedOperation {
  id: string
  /** Grows with every operation. */
  position: number
  tool: string
  status: OperationStatus
  by: 'client' | 'owner'
  /** Milliseconds since 1970. */
  at: number
  /** In the order in which they were made. */
  changes: readonly ChangeRecord[]
}

/** The recorded changes of one session, to be read (FI-14). Those of an operation that still runs are not among them. */
export interface SessionChanges {
  /** Newest first, only those before a position. */
  page(options: { before?: number | undefined; limit: number }): ChangedOperation[]
  /**
   * Everything from an operation on, that one included; all without it. Newest first.
   * @throws KikiError `operation_unavailable` for one of another session, `conflict` while it runs.
   */
  since(operationId?: string): ChangedOperation[]
  /** What a change kept of before; undefined where nothing was there. @throws KikiError where it is lost or damaged. */
  content(operationId: string, seq: number): Buffer | undefined
}

export function createSessionChanges(
  { store, changesFolder }: { store: Pick<Store, 'changes' | 'operations'>; changesFolder: string },
  session: string,
): SessionChanges {
  const read = (filter: { before?: number | undefined; from?: number; limit: number }) =>
    store.changes
      .operationsOf({ session, before: filter.before ?? Number.MAX_SAFE_INTEGER, from: 0, ...defined(filter) })
      .map((row) => fromRow(store, row))
  return {
    page: ({ before, limit }) => read({ before, limit }),
    since(operationId) {
      if (operationId === undefined) return read({ limit: -1 })
      const row = store.operations.get(operationId)
      if (row === undefined || row.session_ref !== session) throw notOfSession(operationId)
      if (!isTerminal(row.status)) throw stillRunning(operationId)
      return read({ from: row.seq, limit: -1 })
    },
    content(operationId, seq) {
      if (store.operations.get(operationId)?.session_ref !== session) throw notOfSession(operationId)
      return journalContent(changesFolder, operationId, seq)
    },
  }
}

/** Identifies a change among those of a session. */
export function keyOf(change: { operationId: string; seq: number }): string {
  return `${change.operationId}.${change.seq}`
}

/**
 * Which changes were taken back, and by which operation, as far as the given operations (newest first, without a gap)
 * tell. An undo that did not end well counts as changes like any other; so does one that was itself taken back.
 */
export function undoneBy(operations: readonly ChangedOperation[]): Map<string, string> {
  const undone = new Map<string, string>()
  for (const operation of operations) {
    if (operation.status !== 'completed') continue
    for (const record of operation.changes) {
      const standing = !undone.has(keyOf({ operationId: operation.id, seq: record.seq }))
      if (standing && record.undoes !== undefined) undone.set(keyOf(record.undoes), operation.id)
    }
  }
  return undone
}

/** Newest first: what still stands, without what was done and taken back within the given operations. */
export function standing(operations: readonly ChangedOperation[]): PastChange[] {
  const undone = undoneBy(operations)
  const within = new Set(operations.map(({ id }) => id))
  return operations.flatMap(changesOf).filter((past) => {
    if (undone.has(keyOfPast(past))) return false
    const { undoes } = past.record
    return undoes === undefined || !within.has(undoes.operationId) || undone.get(keyOf(undoes)) !== past.operationId
  })
}

/** Newest first. */
export function changesOf({ id, changes }: ChangedOperation): PastChange[] {
  return changes.toReversed().map((record) => ({ operationId: id, record }))
}

export function keyOfPast({ operationId, record }: PastChange): string {
  return keyOf({ operationId, seq: record.seq })
}

function defined<T extends object>(filter: T): T {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as T
}

function fromRow(store: Pick<Store, 'changes'>, row: ChangedOperationRow): ChangedOperation {
  const { by } = JSON.parse(row.decision) as { by: string }
  return {
    id: row.id,
    position: row.seq,
    tool: row.tool,
    status: row.status,
    by: by === 'owner' ? 'owner' : 'client',
    at: row.accepted_at,
    changes: store.changes.ofOperation(row.id).map((change) => JSON.parse(change.record) as ChangeRecord),
  }
}

function notOfSession(operationId: string): KikiError {
  return new KikiError('operation_unavailable', `There is no operation ${operationId} in this session.`, {
    hint: 'List the changes of the session for the ids of its operations.',
  })
}

function stillRunning(operationId: string): KikiError {
  return new KikiError('conflict', `Operation ${operationId} still runs; its changes are recorded when it ends.`, {
    hint: 'Wait for its end, or cancel it, then undo it.',
  })
}

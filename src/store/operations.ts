import type { Database } from './database.js'
import { statements } from './database.js'

export const TERMINAL = ['completed', 'failed', 'cancelled', 'outcome_unknown'] as const
export type TerminalStatus = (typeof TERMINAL)[number]
export const STATUSES = ['accepted', 'waiting_approval', 'running', ...TERMINAL] as const
export type OperationStatus = (typeof STATUSES)[number]

export interface OperationRow {
  seq: number
  id: string
  connection_id: string
  session_ref: string
  idempotency_key: string | null
  parent_id: string | null
  /** JSON: name and version of the client application. */
  client: string | null
  tool: string
  effect: string
  /** Canonical JSON. */
  arguments: string
  fingerprint: string
  policy_version: number
  /** JSON of the decision and the rule or setting that made it. */
  decision: string
  approval_id: string | null
  status: OperationStatus
  accepted_at: number
  started_at: number | null
  ended_at: number | null
  boot_id: string | null
  attempt: number
  error_code: string | null
  effects_possible: number
  /** JSON of the saved result, large parts taken out. */
  result: string | null
  result_chars: number
}

export type NewOperation = Omit<OperationRow, 'seq'>

export interface Ending {
  status: TerminalStatus
  ended_at: number
  error_code: string | null
  effects_possible: number
  result: string | null
  result_chars: number
}

export interface OperationFilter {
  connectionId?: string
  sessionRef?: string
  status?: OperationStatus
  /** Only rows before this `seq`: newest first, paged. */
  beforeSeq?: number
  limit: number
}

export type OperationTable = ReturnType<typeof operationTable>

const COLUMNS: readonly (keyof NewOperation)[] = [
  'id',
  'connection_id',
  'session_ref',
  'idempotency_key',
  'parent_id',
  'client',
  'tool',
  'effect',
  'arguments',
  'fingerprint',
  'policy_version',
  'decision',
  'approval_id',
  'status',
  'accepted_at',
  'started_at',
  'ended_at',
  'boot_id',
  'attempt',
  'error_code',
  'effects_possible',
  'result',
  'result_chars',
]

export function operationTable(db: Database) {
  const sql = statements(db)
  const insertSql = `INSERT INTO operations (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((c) => `@${c}`).join(', ')})`
  return {
    insert(row: NewOperation): void {
      sql(insertSql).run(row)
    },
    get(id: string): OperationRow | undefined {
      return sql('SELECT * FROM operations WHERE id = ?').get(id) as OperationRow | undefined
    },
    byKey(connectionId: string, sessionRef: string, key: string): OperationRow | undefined {
      return sql('SELECT * FROM operations WHERE connection_id = ? AND session_ref = ? AND idempotency_key = ?').get(
        connectionId,
        sessionRef,
        key,
      ) as OperationRow | undefined
    },
    start(id: string, bootId: string, now: number): boolean {
      const done = sql(
        `UPDATE operations SET status = 'running', started_at = ?, boot_id = ?, attempt = attempt + 1
         WHERE id = ? AND status = 'accepted'`,
      ).run(now, bootId, id)
      return done.changes === 1
    },
    setApproval(id: string, approvalId: string): void {
      sql('UPDATE operations SET approval_id = ? WHERE id = ?').run(approvalId, id)
    },
    /** An approved operation may begin; false when nobody waits for its approval any more. */
    admit(id: string): boolean {
      return (
        sql("UPDATE operations SET status = 'accepted' WHERE id = ? AND status = 'waiting_approval'").run(id)
          .changes === 1
      )
    },
    /** Side effects of a connection that are not over (GU-63). */
    countUnfinished(connectionId: string): number {
      return Number(
        sql(
          `SELECT count(*) FROM operations WHERE status IN ('accepted', 'waiting_approval', 'running')
             AND connection_id = ? AND effect != 'read'`,
        )
          .pluck()
          .get(connectionId),
      )
    },
    /** False when the row was already over. */
    end(id: string, ending: Ending): boolean {
      const done = sql(
        `UPDATE operations SET status = @status, ended_at = @ended_at, error_code = @error_code,
           effects_possible = @effects_possible, result = @result, result_chars = @result_chars
         WHERE id = @id AND status IN ('accepted', 'waiting_approval', 'running')`,
      ).run({ id, ...ending })
      return done.changes === 1
    },
    list({ connectionId, sessionRef, status, beforeSeq, limit }: OperationFilter): OperationRow[] {
      const where = ['1']
      if (connectionId !== undefined) where.push('connection_id = @connectionId')
      if (sessionRef !== undefined) where.push('session_ref = @sessionRef')
      if (status !== undefined) where.push('status = @status')
      if (beforeSeq !== undefined) where.push('seq < @beforeSeq')
      return sql(`SELECT * FROM operations WHERE ${where.join(' AND ')} ORDER BY seq DESC LIMIT @limit`).all({
        connectionId,
        sessionRef,
        status,
        beforeSeq,
        limit,
      }) as OperationRow[]
    },
    unfinished(filter: { connectionId?: string; sessionRef?: string } = {}): OperationRow[] {
      return sql(
        `SELECT * FROM operations WHERE status IN ('accepted', 'waiting_approval', 'running')
           AND (@connectionId IS NULL OR connection_id = @connectionId)
           AND (@sessionRef IS NULL OR session_ref = @sessionRef) ORDER BY seq`,
      ).all({ connectionId: filter.connectionId ?? null, sessionRef: filter.sessionRef ?? null }) as OperationRow[]
    },
    countByStatus(status: 'accepted' | 'running' | 'waiting_approval'): number {
      return Number(
        sql(
          `SELECT count(*) FROM operations WHERE status = ? AND status IN ('accepted', 'waiting_approval', 'running')`,
        )
          .pluck()
          .get(status),
      )
    },
    /** The oldest finished rows from before a time, for pruning in small steps. */
    expired(before: number, limit: number): OperationRow[] {
      return sql(
        `SELECT * FROM operations WHERE accepted_at < ? AND status IN ('completed', 'failed', 'cancelled', 'outcome_unknown')
         ORDER BY accepted_at LIMIT ?`,
      ).all(before, limit) as OperationRow[]
    },
    remove(id: string): void {
      sql('DELETE FROM operations WHERE id = ?').run(id)
    },
    idsOfSession(ref: string): string[] {
      return sql('SELECT id FROM operations WHERE session_ref = ?').pluck().all(ref) as string[]
    },
    removeSession(ref: string): void {
      sql('DELETE FROM operations WHERE session_ref = ?').run(ref)
    },
  }
}

import type { Database } from './database.js'
import { statements } from './database.js'
import type { OperationStatus } from './operations.js'

export interface ChangeRow {
  operation_id: string
  seq: number
  session_ref: string
  /** JSON of the journal's ChangeRecord. */
  record: string
}

/** An operation that changed files, without its arguments and result. */
export interface ChangedOperationRow {
  id: string
  seq: number
  tool: string
  status: OperationStatus
  decision: string
  accepted_at: number
}

export type ChangeTable = ReturnType<typeof changeTable>

export function changeTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: ChangeRow): void {
      sql(
        'INSERT INTO changes (operation_id, seq, session_ref, record) VALUES (@operation_id, @seq, @session_ref, @record)',
      ).run(row)
    },
    ofOperation(id: string): ChangeRow[] {
      return sql('SELECT * FROM changes WHERE operation_id = ? ORDER BY seq').all(id) as ChangeRow[]
    },
    /** Operations of a session that changed files, newest first; `before` and `from` are their `seq`, `limit` -1 for all. */
    operationsOf(filter: { session: string; before: number; from: number; limit: number }): ChangedOperationRow[] {
      return sql(
        `SELECT o.id, o.seq, o.tool, o.status, o.decision, o.accepted_at
         FROM (SELECT DISTINCT operation_id FROM changes WHERE session_ref = @session) c
         JOIN operations o ON o.id = c.operation_id
         WHERE o.seq < @before AND o.seq >= @from ORDER BY o.seq DESC LIMIT @limit`,
      ).all(filter) as ChangedOperationRow[]
    },
  }
}

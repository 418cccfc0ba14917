import type { Database } from './database.js'
import { statements } from './database.js'

export interface ChangeRow {
  operation_id: string
  seq: number
  session_ref: string
  /** JSON of the journal's ChangeRecord. */
  record: string
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
    ofSession(ref: string): ChangeRow[] {
      return sql(
        `SELECT c.* FROM changes c JOIN operations o ON o.id = c.operation_id
         WHERE c.session_ref = ? ORDER BY o.seq, c.seq`,
      ).all(ref) as ChangeRow[]
    },
  }
}

import type { Database } from './database.js'
import { statements } from './database.js'

export const FOUND = ['happened', 'did_not_happen'] as const

export interface OperationNote {
  operation_id: string
  found: (typeof FOUND)[number]
  note: string
  noted_at: number
}

/** What the owner found out about operations whose outcome is unknown; a later note takes an earlier one's place (OP-16). */
export function operationNoteTable(db: Database) {
  const sql = statements(db)
  return {
    put(row: OperationNote): void {
      sql(
        `INSERT OR REPLACE INTO operation_notes (operation_id, found, note, noted_at)
         VALUES (@operation_id, @found, @note, @noted_at)`,
      ).run(row)
    },
    get(operationId: string): OperationNote | undefined {
      return sql('SELECT * FROM operation_notes WHERE operation_id = ?').get(operationId) as OperationNote | undefined
    },
  }
}

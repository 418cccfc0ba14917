import type { Database } from './database.js'
import { statements } from './database.js'

export interface SavedTextRow {
  id: string
  connection_id: string
  session_ref: string
  operation_id: string | null
  kind: 'note' | 'user_excerpt' | 'assistant_excerpt' | 'handoff'
  title: string
  body: string
  /** JSON list of operation ids. */
  related: string
  created_at: number
}

export type SavedTextTable = ReturnType<typeof savedTextTable>

export function savedTextTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: SavedTextRow): void {
      sql(
        `INSERT INTO saved_texts (id, connection_id, session_ref, operation_id, kind, title, body, related, created_at)
         VALUES (@id, @connection_id, @session_ref, @operation_id, @kind, @title, @body, @related, @created_at)`,
      ).run(row)
    },
    ofSession(ref: string): SavedTextRow[] {
      return sql('SELECT * FROM saved_texts WHERE session_ref = ? ORDER BY created_at, id').all(ref) as SavedTextRow[]
    },
  }
}

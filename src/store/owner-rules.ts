import type { Database } from './database.js'
import { statements } from './database.js'

export interface OwnerRuleRow {
  id: number
  decision: 'allow' | 'ask' | 'deny'
  pattern: string
  connection_id: string | null
  workspace: string | null
  made_at: number
}

export function ownerRuleTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: Omit<OwnerRuleRow, 'id'>): number {
      return Number(
        sql(
          `INSERT INTO owner_rules (decision, pattern, connection_id, workspace, made_at)
           VALUES (@decision, @pattern, @connection_id, @workspace, @made_at)`,
        ).run(row).lastInsertRowid,
      )
    },
    list(): OwnerRuleRow[] {
      return sql('SELECT * FROM owner_rules ORDER BY id').all() as OwnerRuleRow[]
    },
    /** False when there is none. */
    remove(id: number): boolean {
      return sql('DELETE FROM owner_rules WHERE id = ?').run(id).changes === 1
    },
  }
}

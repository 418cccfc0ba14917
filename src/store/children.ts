import type { Database } from './database.js'
import { statements } from './database.js'

export interface ChildRow {
  id: number
  pid: number
  start_time: string
  mark: number | null
  /** JSON list of paths. */
  placeholders: string
  started_at: number
}

/** Children that may outlive the host (GU-02, GU-05). */
export function childTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: Omit<ChildRow, 'id'>): number {
      const { lastInsertRowid } = sql(
        `INSERT INTO children (pid, start_time, mark, placeholders, started_at)
         VALUES (@pid, @start_time, @mark, @placeholders, @started_at)`,
      ).run(row)
      return Number(lastInsertRowid)
    },
    remove(id: number): void {
      sql('DELETE FROM children WHERE id = ?').run(id)
    },
    all: (): ChildRow[] => sql('SELECT * FROM children ORDER BY id').all() as ChildRow[],
  }
}

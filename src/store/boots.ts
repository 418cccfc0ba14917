import type { Database } from './database.js'
import { statements } from './database.js'

export type BootTable = ReturnType<typeof bootTable>

/** One row for each run of the host: whose `running` operations were cut off is told by it (GU-05). */
export function bootTable(db: Database) {
  const sql = statements(db)
  return {
    begin(id: string, pid: number, now: number): void {
      sql('INSERT INTO boots (id, pid, started_at) VALUES (?, ?, ?)').run(id, pid, now)
    },
    end(id: string, now: number): void {
      sql('UPDATE boots SET ended_at = ? WHERE id = ?').run(now, id)
    },
  }
}

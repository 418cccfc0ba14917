import type { Database } from './database.js'
import { statements } from './database.js'

export type ProcessStatus = 'running' | 'exited' | 'ended' | 'lost'

export interface ProcessRow {
  id: string
  operation_id: string
  connection_id: string
  session_ref: string
  policy_version: number
  command: string
  cwd: string
  started_at: number
  ended_at: number | null
  status: ProcessStatus
  exit_code: number | null
  signal: string | null
}

/** Commands in the background (SH-03). */
export function processTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: ProcessRow): void {
      sql(
        `INSERT INTO processes (id, operation_id, connection_id, session_ref, policy_version, command, cwd, started_at,
           ended_at, status, exit_code, signal)
         VALUES (@id, @operation_id, @connection_id, @session_ref, @policy_version, @command, @cwd, @started_at,
           @ended_at, @status, @exit_code, @signal)`,
      ).run(row)
    },
    get: (id: string): ProcessRow | undefined =>
      sql('SELECT * FROM processes WHERE id = ?').get(id) as ProcessRow | undefined,
    /** Newest first; null is any. */
    list: (filter: { session: string | null; connection: string | null; limit: number }): ProcessRow[] =>
      sql(
        `SELECT * FROM processes
         WHERE (@session IS NULL OR session_ref = @session) AND (@connection IS NULL OR connection_id = @connection)
         ORDER BY started_at DESC, id DESC LIMIT @limit`,
      ).all(filter) as ProcessRow[],
    end(row: Pick<ProcessRow, 'id' | 'status' | 'ended_at' | 'exit_code' | 'signal'>): void {
      sql(
        `UPDATE processes SET status = @status, ended_at = @ended_at, exit_code = @exit_code, signal = @signal
         WHERE id = @id AND status = 'running'`,
      ).run(row)
    },
    /** Those of a dead host. @returns how many. */
    loseRunning(now: number): number {
      return sql("UPDATE processes SET status = 'lost', ended_at = ? WHERE status = 'running'").run(now).changes
    },
  }
}

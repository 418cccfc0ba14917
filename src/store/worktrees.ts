import type { Database } from './database.js'
import { statements } from './database.js'

export interface WorktreeRow {
  session_ref: string
  repository: string
  branch: string
  path: string
  base: string | null
  made_at: number
}

/** Git worktrees of sessions (SE-10). */
export function worktreeTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: WorktreeRow): void {
      sql(
        `INSERT INTO worktrees (session_ref, repository, branch, path, base, made_at)
         VALUES (@session_ref, @repository, @branch, @path, @base, @made_at)`,
      ).run(row)
    },
    get: (session: string): WorktreeRow | undefined =>
      sql('SELECT * FROM worktrees WHERE session_ref = ?').get(session) as WorktreeRow | undefined,
    remove(session: string): void {
      sql('DELETE FROM worktrees WHERE session_ref = ?').run(session)
    },
    /** Open sessions that work in a folder. */
    openSessionsIn: (path: string): string[] =>
      sql("SELECT ref FROM sessions WHERE workspace = ? AND status = 'open'").pluck().all(path) as string[],
  }
}

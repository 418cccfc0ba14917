import type { Database } from './database.js'
import { statements } from './database.js'

export interface WorktreeRow {
  path: string
  repository: string
  branch: string
  /** Null until it is made. */
  common_dir: string | null
  git_dir: string | null
  base: string | null
  /** 1 where Kiki made the branch too. */
  made_branch: number
  /** JSON list of names. */
  filters_off: string
  created_at: number
}

export type WorktreeTable = ReturnType<typeof worktreeTable>

export function worktreeTable(db: Database) {
  const sql = statements(db)
  return {
    begin(row: Pick<WorktreeRow, 'path' | 'repository' | 'branch' | 'created_at'>): void {
      sql(
        `INSERT INTO worktrees (path, repository, branch, made_branch, created_at)
         VALUES (@path, @repository, @branch, 0, @created_at)`,
      ).run(row)
    },
    made(row: Omit<WorktreeRow, 'repository' | 'branch' | 'created_at'>): void {
      sql(
        `UPDATE worktrees SET common_dir = @common_dir, git_dir = @git_dir, base = @base, made_branch = @made_branch,
           filters_off = @filters_off WHERE path = @path`,
      ).run(row)
    },
    get(path: string): WorktreeRow | undefined {
      return sql('SELECT * FROM worktrees WHERE path = ?').get(path) as WorktreeRow | undefined
    },
    remove(path: string): void {
      sql('DELETE FROM worktrees WHERE path = ?').run(path)
    },
    /** Begun, and not made to the end: a host died, or is about to finish it. */
    unfinished(): string[] {
      return sql('SELECT path FROM worktrees WHERE git_dir IS NULL ORDER BY created_at').pluck().all() as string[]
    },
    /** Sessions that somebody can still work in there. */
    openSessions(path: string): number {
      return Number(sql("SELECT count(*) FROM sessions WHERE workspace = ? AND status = 'open'").pluck().get(path))
    },
  }
}

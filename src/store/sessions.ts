import type { Database } from './database.js'
import { statements } from './database.js'
import { createRowCache } from './row-cache.js'

export interface SessionRow {
  seq: number
  ref: string
  connection_id: string
  title: string
  workspace: string
  /** 1 where a disk was mounted at the folder when the session was made. */
  mounted: number
  mode: string
  profile: string | null
  status: 'open' | 'closed'
  created_at: number
  last_activity_at: number
  closed_at: number | null
}

export interface SessionFilter {
  connectionId?: string
  status?: SessionRow['status']
  limit: number
  /** Position in the list, newest activity first. */
  offset: number
}

export type SessionTable = ReturnType<typeof sessionTable>

export function sessionTable(db: Database) {
  const sql = statements(db)
  const cache = createRowCache<SessionRow>(db)
  return {
    insert(
      row: Pick<
        SessionRow,
        'ref' | 'connection_id' | 'title' | 'workspace' | 'mounted' | 'mode' | 'profile' | 'created_at'
      >,
    ): void {
      sql(
        `INSERT INTO sessions (ref, connection_id, title, workspace, mounted, mode, profile, created_at, last_activity_at)
         VALUES (@ref, @connection_id, @title, @workspace, @mounted, @mode, @profile, @created_at, @created_at)`,
      ).run(row)
    },
    get(ref: string): SessionRow | undefined {
      return cache.get(ref, () => sql('SELECT * FROM sessions WHERE ref = ?').get(ref) as SessionRow | undefined)
    },
    list({ connectionId, status, limit, offset }: SessionFilter): SessionRow[] {
      return sql(
        `SELECT * FROM sessions
         WHERE (@connectionId IS NULL OR connection_id = @connectionId) AND (@status IS NULL OR status = @status)
         ORDER BY last_activity_at DESC, seq DESC LIMIT @limit OFFSET @offset`,
      ).all({ connectionId: connectionId ?? null, status: status ?? null, limit, offset }) as SessionRow[]
    },
    /** Those that somebody can work in: open, and of a connection that is not revoked. */
    count(): number {
      return Number(
        sql(
          `SELECT count(*) FROM sessions JOIN connections ON connections.id = sessions.connection_id
           WHERE sessions.status = 'open' AND connections.status != 'revoked'`,
        )
          .pluck()
          .get(),
      )
    },
    update(ref: string, change: { title: string; mode: string }): void {
      cache.forget(ref)
      sql('UPDATE sessions SET title = @title, mode = @mode WHERE ref = @ref').run({ ref, ...change })
    },
    touch(ref: string, now: number): void {
      cache.forget(ref)
      sql('UPDATE sessions SET last_activity_at = max(last_activity_at, ?) WHERE ref = ?').run(now, ref)
    },
    close(ref: string, now: number): void {
      cache.forget(ref)
      sql("UPDATE sessions SET status = 'closed', closed_at = ? WHERE ref = ? AND status = 'open'").run(now, ref)
    },
    remove(ref: string): void {
      cache.forget(ref)
      sql('DELETE FROM sessions WHERE ref = ?').run(ref)
    },
  }
}

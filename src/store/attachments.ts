import type { Database } from './database.js'
import { statements } from './database.js'

export type AttachmentTable = ReturnType<typeof attachmentTable>

export function attachmentTable(db: Database) {
  const sql = statements(db)
  return {
    attach(connectionId: string, holder: string, ref: string, now: number): void {
      sql(
        `INSERT INTO attachments (connection_id, holder, session_ref, attached_at, seen_at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at`,
      ).run(connectionId, holder, ref, now, now)
    },
    detachHolder(connectionId: string, holder: string): void {
      sql('DELETE FROM attachments WHERE connection_id = ? AND holder = ?').run(connectionId, holder)
    },
    detachSession(ref: string): void {
      sql('DELETE FROM attachments WHERE session_ref = ?').run(ref)
    },
    /** Refs of open sessions that this holder is attached to. */
    ofHolder(connectionId: string, holder: string): string[] {
      return sql(
        `SELECT a.session_ref FROM attachments a JOIN sessions s ON s.ref = a.session_ref
         WHERE a.connection_id = ? AND a.holder = ? AND s.status = 'open' ORDER BY a.attached_at`,
      )
        .pluck()
        .all(connectionId, holder) as string[]
    },
    /** Refs of open sessions that anyone of this connection is attached to. */
    ofConnection(connectionId: string): string[] {
      return sql(
        `SELECT DISTINCT a.session_ref FROM attachments a JOIN sessions s ON s.ref = a.session_ref
         WHERE a.connection_id = ? AND s.status = 'open'`,
      )
        .pluck()
        .all(connectionId) as string[]
    },
    /** Forgets every holder of one kind but those. */
    keepHolders(kind: string, kept: ReadonlySet<string>): void {
      sql(`DELETE FROM attachments WHERE holder LIKE ? || ':%' AND holder NOT IN (SELECT value FROM json_each(?))`).run(
        kind,
        JSON.stringify([...kept]),
      )
    },
  }
}

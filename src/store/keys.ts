import { sha256 } from '../lib/json.js'
import type { Database } from './database.js'
import { statements } from './database.js'

export type KeyTable = ReturnType<typeof keyTable>

/** Tombstones of idempotency keys whose operation retention removed (OP-07). */
export function keyTable(db: Database) {
  const sql = statements(db)
  return {
    bury(connectionId: string, sessionRef: string, key: string, now: number): void {
      sql(
        'INSERT OR REPLACE INTO key_tombstones (connection_id, session_ref, key_hash, expired_at) VALUES (?, ?, ?, ?)',
      ).run(connectionId, sessionRef, sha256(key), now)
    },
    isBuried(connectionId: string, sessionRef: string, key: string): boolean {
      return (
        sql('SELECT 1 FROM key_tombstones WHERE connection_id = ? AND session_ref = ? AND key_hash = ?').get(
          connectionId,
          sessionRef,
          sha256(key),
        ) !== undefined
      )
    },
    /** Removes at most `limit` tombstones from before a time; how many it were. */
    prune(before: number, limit: number): number {
      return sql(
        `DELETE FROM key_tombstones WHERE (connection_id, session_ref, key_hash) IN
           (SELECT connection_id, session_ref, key_hash FROM key_tombstones WHERE expired_at < ? LIMIT ?)`,
      ).run(before, limit).changes
    },
  }
}

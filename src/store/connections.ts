import type { Database } from './database.js'
import { statements } from './database.js'
import { createRowCache } from './row-cache.js'

export interface ConnectionRow {
  id: string
  name: string
  kind: 'local' | 'remote' | 'token'
  status: 'active' | 'paused' | 'revoked'
  policy_version: number
  grant_json: string
  expires_at: number | null
  created_at: number
  updated_at: number
  last_used_at: number | null
}

export type ConnectionTable = ReturnType<typeof connectionTable>

export function connectionTable(db: Database) {
  const sql = statements(db)
  const cache = createRowCache<ConnectionRow>(db)
  return {
    insert(row: Pick<ConnectionRow, 'id' | 'name' | 'kind' | 'grant_json' | 'expires_at' | 'created_at'>): void {
      sql(
        `INSERT INTO connections (id, name, kind, grant_json, expires_at, created_at, updated_at)
         VALUES (@id, @name, @kind, @grant_json, @expires_at, @created_at, @created_at)`,
      ).run(row)
    },
    get(id: string): ConnectionRow | undefined {
      return cache.get(id, () => sql('SELECT * FROM connections WHERE id = ?').get(id) as ConnectionRow | undefined)
    },
    list(): ConnectionRow[] {
      return sql('SELECT * FROM connections ORDER BY created_at, id').all() as ConnectionRow[]
    },
    count(): number {
      return Number(sql("SELECT count(*) FROM connections WHERE status != 'revoked'").pluck().get())
    },
    update(
      row: Pick<ConnectionRow, 'id' | 'name' | 'grant_json' | 'expires_at' | 'policy_version' | 'updated_at'>,
    ): void {
      cache.forget(row.id)
      sql(
        `UPDATE connections SET name = @name, grant_json = @grant_json, expires_at = @expires_at,
           policy_version = @policy_version, updated_at = @updated_at WHERE id = @id`,
      ).run(row)
    },
    setStatus(id: string, status: ConnectionRow['status'], now: number): void {
      cache.forget(id)
      sql('UPDATE connections SET status = ?, updated_at = ?, policy_version = policy_version + ? WHERE id = ?').run(
        status,
        now,
        status === 'revoked' ? 1 : 0,
        id,
      )
    },
    /** Of every connection that is not revoked. */
    raisePolicyVersions(now: number): void {
      cache.forgetAll()
      sql("UPDATE connections SET policy_version = policy_version + 1, updated_at = ? WHERE status != 'revoked'").run(
        now,
      )
    },
    touch(id: string, now: number): void {
      cache.forget(id)
      sql('UPDATE connections SET last_used_at = ? WHERE id = ?').run(now, id)
    },
    remove(id: string): void {
      cache.forget(id)
      sql('DELETE FROM connections WHERE id = ?').run(id)
    },
    insertToken(hash: string, connectionId: string, now: number): void {
      sql('INSERT INTO connection_tokens (hash, connection_id, created_at) VALUES (?, ?, ?)').run(
        hash,
        connectionId,
        now,
      )
    },
    connectionOfToken(hash: string): string | undefined {
      return sql('SELECT connection_id FROM connection_tokens WHERE hash = ? AND revoked_at IS NULL')
        .pluck()
        .get(hash) as string | undefined
    },
    revokeTokens(connectionId: string, now: number): void {
      sql('UPDATE connection_tokens SET revoked_at = ? WHERE connection_id = ? AND revoked_at IS NULL').run(
        now,
        connectionId,
      )
    },
  }
}

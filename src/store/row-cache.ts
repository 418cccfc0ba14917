import type { Database } from './database.js'

export interface RowCache<Row> {
  /** The committed row, or what `read` finds. */
  get(key: string, read: () => Row | undefined): Row | undefined
  /** To be called by every write of the row, before or after it, inside its transaction. */
  forget(key: string): void
  forgetAll(): void
}

/**
 * Rows that every call reads and few calls write. Only this process writes the database (its lock), and what is read inside
 * a transaction is not kept: it may be undone. @param most rows that are kept; the oldest goes first.
 */
export function createRowCache<Row>(db: Database, most = 1000): RowCache<Row> {
  const rows = new Map<string, Row>()
  return {
    get(key, read) {
      const kept = rows.get(key)
      if (kept !== undefined) return kept
      const row = read()
      if (row === undefined || db.inTransaction) return row
      if (rows.size >= most) rows.delete(rows.keys().next().value as string)
      rows.set(key, row)
      return row
    },
    forget: (key) => void rows.delete(key),
    forgetAll: () => rows.clear(),
  }
}

import type { Database } from './database.js'
import { statements } from './database.js'

/** Bytes of one chunk: 65,536 UTF-16 code units of text, or so many bytes of media. */
export const CHUNK_BYTES = 131_072

export type ResultTable = ReturnType<typeof resultTable>

/** Large parts of saved results, in chunks so that a page near the end costs what one at the start does (OP-14). */
export function resultTable(db: Database) {
  const sql = statements(db)
  return {
    insert(operationId: string, part: number, body: Buffer): void {
      const insert = sql('INSERT INTO result_parts (operation_id, part, chunk, body) VALUES (?, ?, ?, ?)')
      for (let at = 0, chunk = 0; at < body.length; at += CHUNK_BYTES, chunk++) {
        insert.run(operationId, part, chunk, body.subarray(at, at + CHUNK_BYTES))
      }
    },
    /** In how many chunks what an operation has here lies. */
    chunks(operationId: string): number {
      return sql('SELECT count(*) FROM result_parts WHERE operation_id = ?').pluck().get(operationId) as number
    },
    /** Bytes `start` to `end` (exclusive) of a part; shorter where the part ends before. */
    read(operationId: string, part: number, start: number, end: number): Buffer {
      const first = Math.floor(start / CHUNK_BYTES)
      const chunks = sql(
        'SELECT body FROM result_parts WHERE operation_id = ? AND part = ? AND chunk BETWEEN ? AND ? ORDER BY chunk',
      )
        .pluck()
        .all(operationId, part, first, Math.max(first, Math.ceil(end / CHUNK_BYTES) - 1)) as Buffer[]
      return Buffer.concat(chunks).subarray(start - first * CHUNK_BYTES, end - first * CHUNK_BYTES)
    },
  }
}

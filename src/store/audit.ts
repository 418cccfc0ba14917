import type { Database } from './database.js'
import { statements } from './database.js'

export interface AuditRow {
  /** From 1, without gaps. */
  seq: number
  at: number
  actor: string
  action: string
  connection_id: string | null
  session_ref: string | null
  operation_id: string | null
  tool: string | null
  argument_hash: string | null
  decision: string | null
  rule: string | null
  status: string | null
  error_code: string | null
  duration_ms: number | null
  /** A flat JSON object. */
  detail: string | null
  mac: Buffer
}

export interface AuditFilter {
  connectionId?: string
  sessionRef?: string
  action?: string
  tool?: string
  status?: string
  /** Milliseconds since 1970. */
  since?: number
}

export type AuditTable = ReturnType<typeof auditTable>

const COLUMNS: readonly (keyof AuditRow)[] = [
  'seq',
  'at',
  'actor',
  'action',
  'connection_id',
  'session_ref',
  'operation_id',
  'tool',
  'argument_hash',
  'decision',
  'rule',
  'status',
  'error_code',
  'duration_ms',
  'detail',
  'mac',
]

/** The audit log. It has no index but its own: every call adds an entry, and who asks for some reads it in slices. */
export function auditTable(db: Database) {
  const sql = statements(db)
  const insertSql = `INSERT INTO audit (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((c) => `@${c}`).join(', ')})`
  return {
    insert(row: AuditRow): void {
      sql(insertSql).run(row)
    },
    last(): Pick<AuditRow, 'seq' | 'mac'> | undefined {
      return sql('SELECT seq, mac FROM audit ORDER BY seq DESC LIMIT 1').get() as
        | Pick<AuditRow, 'seq' | 'mac'>
        | undefined
    },
    macOf(seq: number): Buffer | undefined {
      return sql('SELECT mac FROM audit WHERE seq = ?').pluck().get(seq) as Buffer | undefined
    },
    /** In order, after `seq` and up to `end`. */
    after(seq: number, end: number, limit: number): AuditRow[] {
      return sql('SELECT * FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?').all(
        seq,
        end,
        limit,
      ) as AuditRow[]
    },
    /** Newest first, of those from `from` to before `to` that fit. */
    between(from: number, to: number, filter: AuditFilter, limit: number): AuditRow[] {
      const where = ['seq >= @from', 'seq < @to']
      if (filter.connectionId !== undefined) where.push('connection_id = @connectionId')
      if (filter.sessionRef !== undefined) where.push('session_ref = @sessionRef')
      if (filter.action !== undefined) where.push('action = @action')
      if (filter.tool !== undefined) where.push('tool = @tool')
      if (filter.status !== undefined) where.push('status = @status')
      if (filter.since !== undefined) where.push('at >= @since')
      return sql(`SELECT * FROM audit WHERE ${where.join(' AND ')} ORDER BY seq DESC LIMIT @limit`).all({
        ...filter,
        from,
        to,
        limit,
      }) as AuditRow[]
    },
  }
}

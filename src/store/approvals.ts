import type { Database } from './database.js'
import { statements } from './database.js'
import type { OperationRow } from './operations.js'

export const SCOPES = ['once', 'session', 'always'] as const
export type ApprovalScope = (typeof SCOPES)[number]

export interface ApprovalRow {
  seq: number
  id: string
  operation_id: string
  /** JSON: which decision asked, and why. */
  decision: string
  /** JSON list of what approving for the session covers. */
  kinds: string
  policy_version: number
  asked_at: number
  expires_at: number | null
  answer: 'approved' | 'denied' | null
  scope: ApprovalScope | null
  message: string | null
  answered_by: string | null
  answered_at: number | null
}

export type NewApproval = Pick<
  ApprovalRow,
  'id' | 'operation_id' | 'decision' | 'kinds' | 'policy_version' | 'asked_at' | 'expires_at'
>
export type Answer = Pick<ApprovalRow, 'answer' | 'scope' | 'message' | 'answered_by' | 'answered_at'>

/** A question together with the operation that waits for it. */
export interface Asked {
  approval: ApprovalRow
  operation: OperationRow
}

export type ApprovalTable = ReturnType<typeof approvalTable>

export function approvalTable(db: Database) {
  const sql = statements(db)
  return {
    insert(row: NewApproval): void {
      sql(
        `INSERT INTO approvals (id, operation_id, decision, kinds, policy_version, asked_at, expires_at)
         VALUES (@id, @operation_id, @decision, @kinds, @policy_version, @asked_at, @expires_at)`,
      ).run(row)
    },
    get(id: string): ApprovalRow | undefined {
      return sql('SELECT * FROM approvals WHERE id = ?').get(id) as ApprovalRow | undefined
    },
    /** Open questions, oldest first. */
    waiting(): ApprovalRow[] {
      return sql(
        `SELECT approvals.* FROM approvals JOIN operations ON operations.id = approvals.operation_id
         WHERE operations.status = 'waiting_approval' AND approvals.answer IS NULL ORDER BY approvals.seq`,
      ).all() as ApprovalRow[]
    },
    /** False when it was answered before. */
    answer(id: string, answer: Answer): boolean {
      const done = sql(
        `UPDATE approvals SET answer = @answer, scope = @scope, message = @message, answered_by = @answered_by,
           answered_at = @answered_at WHERE id = @id AND answer IS NULL`,
      ).run({ id, ...answer })
      return done.changes === 1
    },
    allowKind(row: {
      session_ref: string
      kind: string
      definition: string
      policy_version: number
      now: number
    }): void {
      sql(
        `INSERT OR REPLACE INTO session_approvals (session_ref, kind, definition, policy_version, approved_at)
         VALUES (@session_ref, @kind, @definition, @policy_version, @now)`,
      ).run(row)
    },
    allowsKind(row: { session_ref: string; kind: string; definition: string; policy_version: number }): boolean {
      return (
        sql(
          `SELECT 1 FROM session_approvals WHERE session_ref = @session_ref AND kind = @kind
             AND definition = @definition AND policy_version = @policy_version`,
        ).get(row) !== undefined
      )
    },
  }
}

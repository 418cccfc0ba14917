/**
 * The closed set of refusal and failure codes that a client can see (spec/control.md, "Refusal").
 * Every edge (MCP, owner API, command line) maps these in one table of its own.
 */
export const ERROR_CODES = [
  'invalid_arguments',
  'session_required',
  'session_conflict',
  'session_closed',
  'session_unavailable',
  'tool_unavailable',
  'idempotency_required',
  'idempotency_conflict',
  'idempotency_expired',
  'permission_denied',
  'path_denied',
  'approval_unavailable',
  'approval_denied',
  'connection_paused',
  'connection_revoked',
  'rate_limited',
  'operation_unavailable',
  'result_missing',
  'not_found',
  'conflict',
  'too_large',
  'timeout',
  'cancelled',
  'outcome_unknown',
  'upstream_unavailable',
  'sandbox_unavailable',
  'command_failed',
  'internal_error',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

export interface ErrorDetails {
  /** What the reader can do next, in one sentence. */
  hint?: string
  /** Facts for programs; never a secret. */
  data?: Record<string, unknown>
  cause?: unknown
}

/** A refusal or failure that the caller is told about. Anything else that is thrown is a bug. */
export class KikiError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly data: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'KikiError'
    this.code = code
    this.hint = details.hint
    this.data = details.data
  }
}

/** The `code` of a Node.js system error (`ENOENT`, …), or undefined. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

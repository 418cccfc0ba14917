import { randomUUID } from 'node:crypto'
import type { Context, ErrorHandler, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type ErrorCode, KikiError, systemCode } from '../lib/errors.js'
import type { Log } from '../lib/log.js'

/** The one table from refusals to HTTP status on the owner API. A new code does not compile until it has a row. */
export const HTTP_STATUS: Record<ErrorCode, ContentfulStatusCode> = {
  invalid_arguments: 400,
  session_required: 400,
  session_conflict: 409,
  session_closed: 409,
  session_unavailable: 404,
  tool_unavailable: 404,
  idempotency_required: 400,
  idempotency_conflict: 409,
  idempotency_expired: 410,
  permission_denied: 403,
  path_denied: 403,
  approval_unavailable: 409,
  approval_denied: 403,
  connection_paused: 409,
  connection_revoked: 409,
  rate_limited: 429,
  operation_unavailable: 404,
  result_missing: 410,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  timeout: 504,
  cancelled: 409,
  outcome_unknown: 409,
  upstream_unavailable: 502,
  sandbox_unavailable: 503,
  command_failed: 500,
  internal_error: 500,
}

/** What every failed owner API call answers. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string; hint?: string; data?: Record<string, unknown> }
}

/**
 * Answers with a refusal. `status` is only for the few that the table cannot tell apart (401, 415).
 * A `data.retry_after_s` becomes the `Retry-After` header (RFC 9110 §10.2.3).
 */
export function refuse(c: Context, error: KikiError, status: ContentfulStatusCode = HTTP_STATUS[error.code]): Response {
  const retryAfter = error.data?.retry_after_s
  if (typeof retryAfter === 'number') c.header('Retry-After', String(Math.ceil(retryAfter)))
  const body: ErrorBody = { error: { code: error.code, message: error.message } }
  if (error.hint !== undefined) body.error.hint = error.hint
  if (error.data !== undefined) body.error.data = error.data
  return c.json(body, status)
}

/** Hono's `onError`: refusals are told; anything else is a bug, logged with an id and told without details. */
export function errorHandler({ log }: { log: Log }): ErrorHandler {
  return (error, c) => {
    if (error instanceof KikiError) return refuse(c, error)
    if (error instanceof HTTPException && error.status < 500) {
      return refuse(c, new KikiError('invalid_arguments', error.message || 'The request was refused.'), 400)
    }
    if (wasCutOff(error)) {
      return refuse(
        c,
        new KikiError('invalid_arguments', 'The request ended before its body did. Send it again, whole.'),
      )
    }
    const errorId = randomUUID()
    log.error(
      { error_id: errorId, method: c.req.method, path: c.req.path, name: error.name, stack: error.stack },
      'The owner API failed',
    )
    return refuse(
      c,
      new KikiError('internal_error', 'Kiki made a mistake; nothing more is known here.', {
        hint: `Look for ${errorId} in logs/kiki.log in the home.`,
        data: { error_id: errorId },
      }),
    )
  }
}

/** Node's own words for a request whose sender went away within the body: nobody's bug, and nobody is left to read the answer. */
function wasCutOff(error: Error): boolean {
  return systemCode(error) === 'ECONNRESET' && error.message === 'aborted'
}

/** Hono's `notFound`: JSON under `/api`, plain text elsewhere. */
export const notFound: NotFoundHandler = (c) => {
  if (!/^\/api(\/|$)/.test(c.req.path)) return c.text('Not found. The settings page is at /.\n', 404)
  return refuse(
    c,
    new KikiError('not_found', `There is no ${c.req.method} ${c.req.path}.`, {
      hint: 'docs/owner-api.md lists what there is.',
    }),
  )
}

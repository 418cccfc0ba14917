import type { Id } from './message.js'

/** Error code of JSON-RPC for what the server itself ran into. */
const SERVER_ERROR = -32000

export function errorLine(id: Id | null, code: number, message: string, data?: Record<string, unknown>): string {
  return toLine({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } })
}

/** For a request that was in flight when the host went away: it is never sent again by the bridge (GU-23). */
export function lostLine(id: Id, method: string): string {
  const message =
    method === 'tools/call'
      ? "Kiki's host went away before it answered. The call may have run: retrying it with the same idempotency key, or asking kiki_operation, is safe; retrying without a key may do it twice."
      : "Kiki's host went away before it answered. Ask again."
  return errorLine(id, SERVER_ERROR, message, { reason: 'host_gone', may_have_run: method === 'tools/call' })
}

/** For a request that was never sent to a host. */
export function unsentLine(id: Id, why: string): string {
  return errorLine(id, SERVER_ERROR, `${why} Nothing was sent, so retrying is safe.`, {
    reason: 'host_away',
    may_have_run: false,
  })
}

export function notificationLine(method: string, params?: Record<string, unknown>): string {
  return toLine({ jsonrpc: '2.0', method, ...(params && { params }) })
}

/** The same message under another id. */
export function withId(line: Buffer, id: Id): string {
  return toLine({ ...(JSON.parse(line.toString('utf8')) as object), id })
}

function toLine(message: object): string {
  return `${JSON.stringify(message)}\n`
}

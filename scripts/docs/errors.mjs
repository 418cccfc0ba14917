import { HTTP_STATUS } from '../../dist/http/errors.js'
import { ERROR_CODES } from '../../dist/lib/errors.js'
import { code, pair, table } from './markdown.mjs'

/** When each code is answered. */
const WHEN = {
  invalid_arguments: 'an argument is missing, unknown or of the wrong form',
  session_required: 'the call names no session, and none follows from where it comes from',
  session_conflict: 'the session is not the one that this chat works in',
  session_closed: 'the session was closed',
  session_unavailable: 'there is no such session for this connection, or its folder is gone or was replaced',
  tool_unavailable: 'there is no such tool, or the connection does not share it',
  idempotency_required: 'the call has side effects and carries no key',
  idempotency_conflict: 'the key was used for another call; nothing ran',
  idempotency_expired: 'the key belongs to a call that is too old to be replayed; nothing ran',
  permission_denied: 'a setting of the owner forbids it; the answer names the setting',
  path_denied: 'the path is outside of what the session may touch',
  approval_unavailable: 'the owner would have to be asked, and nobody can be asked; nothing ran',
  approval_denied: 'the owner said no',
  connection_paused: 'the owner paused this connection',
  connection_revoked: 'the owner revoked this connection, or it has expired',
  rate_limited: 'the connection made more calls than its limit allows; the answer says when to try again',
  operation_unavailable: 'there is no such operation for this connection',
  result_missing: 'the saved result, or the part that was asked for, does not exist',
  not_found: 'the file, the text or the thing that was named does not exist',
  conflict: 'the state of things is another than the call assumes',
  too_large: 'something is over its limit; the answer names the limit',
  timeout: 'it did not end within its time',
  cancelled: 'it was cancelled before it ended',
  outcome_unknown: 'it had begun when the host died; look at the target, since it never runs again by itself',
  upstream_unavailable: 'the other side does not answer: no host runs, or a server that Kiki uses is away',
  sandbox_unavailable: 'the confinement that the connection requires does not work here',
  command_failed: 'a command ran and ended with another exit code than 0, or by a signal',
  internal_error: 'Kiki made a mistake; the log has the details under the id that the answer names',
}

export function errorTable() {
  const rows = pair('errors', [...ERROR_CODES], WHEN).map(([name, when]) => [code(name), HTTP_STATUS[name], when])
  return table(['code', 'HTTP status (owner API)', 'when'], rows)
}

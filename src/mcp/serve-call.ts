import { callTool } from '../calls/call-tool.js'
import type { Caller, ToolRequest } from '../calls/caller.js'
import { findControl } from '../control/control.js'
import type { Reply } from '../lib/content.js'
import { messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import { withoutOwnParameters } from './own-parameters.js'
import type { ServerDeps } from './server.js'

/** What a `tools/call` request says. */
export interface CallFields {
  name: string
  arguments?: Record<string, unknown> | undefined
  progressToken?: string | number | undefined
}

/** What a transport gives for the time of one request. */
export interface CallStream {
  signal: AbortSignal
  /** Sends `notifications/progress`. */
  notify(params: Record<string, unknown>): Promise<void>
}

/** A `tools/call` request of any transport: one of the control tools, or the gate. */
export function serveCall(deps: ServerDeps, caller: Caller, fields: CallFields, stream: CallStream): Promise<Reply> {
  const call: ToolRequest = {
    name: fields.name,
    arguments: withoutOwnParameters(caller.client, fields.arguments ?? {}),
    signal: stream.signal,
  }
  const onProgress = progressTo(fields, stream, deps.log)
  if (onProgress !== undefined) call.onProgress = onProgress
  const control = findControl(call.name)
  return control === undefined ? callTool(deps, caller, call) : control.call(deps, caller, call)
}

/** What sends progress to the client, if it gave a token for it: 0 and "" are tokens, and none is ever made up (OP-09, FC-T09). */
function progressTo({ progressToken }: CallFields, { notify }: CallStream, log: Log) {
  if (progressToken === undefined) return undefined
  let progress = 0
  return (message: string): void => {
    progress++
    notify({ progressToken, progress, message }).catch((error: unknown) =>
      log.debug({ error: messageOf(error) }, 'progress was not delivered'),
    )
  }
}

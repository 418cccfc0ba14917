import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import type { Caller } from '../calls/caller.js'
import { KikiError } from '../lib/errors.js'
import { type CallFields, serveCall } from './serve-call.js'
import type { ServerDeps } from './server.js'

type Id = string | number

/** Serves `tools/call` of an established 2025-era stream without the SDK's schemas, which cost as much as a small read. */
export interface DirectCalls {
  /** False for everything that is not a plain `tools/call`, or the cancelling of one that is served here: that is the SDK's. */
  take(message: unknown): boolean
  /** The stream is over: nobody waits for an answer any more. */
  end(): void
}

/**
 * Only the plainest form is taken: whatever has an unknown member, a `_meta` of the protocol's own, or an id that is in use
 * goes the SDK's way and is answered there. Both ways end in {@link serveCall}, and are held to the same tests.
 * @param callerNow undefined until the client has said who it is (`initialize`).
 */
export function createDirectCalls(
  deps: ServerDeps,
  callerNow: () => Caller | undefined,
  transport: Pick<Transport, 'send'>,
): DirectCalls {
  const running = new Map<Id, AbortController>()
  const send = (message: JSONRPCMessage) =>
    transport
      .send(message)
      .catch((error: unknown) => deps.log.debug({ error: String(error) }, 'an answer was not sent'))

  async function serve(caller: Caller, id: Id, fields: CallFields): Promise<void> {
    const controller = new AbortController()
    running.set(id, controller)
    const notify = (params: Record<string, unknown>) =>
      transport.send({ jsonrpc: '2.0', method: 'notifications/progress', params })
    const result = await serveCall(deps, caller, fields, { signal: controller.signal, notify })
    running.delete(id)
    // A request that was cancelled gets no answer (MCP, "Cancellation").
    if (!controller.signal.aborted) await send({ jsonrpc: '2.0', id, result: { ...result } })
  }

  return {
    take(message) {
      const cancelled = cancelledId(message)
      if (cancelled !== undefined) {
        const controller = running.get(cancelled)
        controller?.abort(new KikiError('cancelled', 'The caller cancelled the request.'))
        return controller !== undefined
      }
      const call = plainCall(message)
      const caller = call === undefined || running.has(call.id) ? undefined : callerNow()
      if (call === undefined || caller === undefined) return false
      serve(caller, call.id, call.fields).catch((error: unknown) =>
        deps.log.error({ tool: call.fields.name, error: String(error) }, 'a call was not answered by a bug'),
      )
      return true
    },
    end() {
      for (const controller of running.values()) controller.abort(new KikiError('cancelled', 'The stream has ended.'))
    },
  }
}

function plainCall(message: unknown): { id: Id; fields: CallFields } | undefined {
  if (!isObject(message) || message.method !== 'tools/call' || message.jsonrpc !== '2.0') return undefined
  const { id, params } = message
  if (!isId(id) || Object.keys(message).length !== 4 || !isObject(params)) return undefined
  const { name, arguments: args, _meta: meta, ...others } = params
  if (typeof name !== 'string' || Object.keys(others).length > 0) return undefined
  if (args !== undefined && !isObject(args)) return undefined
  if (meta === undefined) return { id, fields: { name, arguments: args } }
  if (!isObject(meta) || Object.keys(meta).some((key) => key.startsWith('io.modelcontextprotocol/'))) return undefined
  const { progressToken } = meta
  if (progressToken !== undefined && !isId(progressToken)) return undefined
  return { id, fields: { name, arguments: args, progressToken } }
}

function cancelledId(message: unknown): Id | undefined {
  if (!isObject(message) || message.method !== 'notifications/cancelled' || !isObject(message.params)) return undefined
  const { requestId } = message.params
  return isId(requestId) ? requestId : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isId(value: unknown): value is Id {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

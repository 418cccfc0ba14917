import { type Id, isObject } from './message.js'
import type { Opening, Relay } from './relay.js'

/** Sends a request of the client to the host; `relay` must be open. */
export function sendRequest(relay: Relay, line: Buffer, id: Id, method: string): void {
  if (method === 'subscriptions/listen') {
    relay.listens.set(id, { line: Buffer.from(line), acknowledged: false, ending: undefined })
  } else relay.pending.set(id, method)
  rememberRequest(relay.opening, line, method)
  relay.out.toHost(line)
}

/** Sends a notification of the client to the host; `relay` must be open. */
export function sendNotification(relay: Relay, line: Buffer, method: string): void {
  rememberNotification(relay.opening, method)
  relay.out.toHost(line)
}

/** Subscriptions that are said again to a new host; a client with more has to subscribe anew. */
const MAX_SETTINGS = 1000

/** Remembers what a new host has to hear again. */
function rememberRequest(opening: Opening, line: Buffer, method: string): void {
  if (method === 'initialize') {
    opening.initialize = Buffer.from(line)
    opening.initialized = false
    opening.settings.clear()
  } else if (method === 'logging/setLevel') opening.settings.set(method, Buffer.from(line))
  else if (method === 'resources/subscribe' && opening.settings.size < MAX_SETTINGS) {
    opening.settings.set(uriOf(line), Buffer.from(line))
  } else if (method === 'resources/unsubscribe') opening.settings.delete(uriOf(line))
}

function rememberNotification(opening: Opening, method: string): void {
  if (method === 'notifications/initialized') opening.initialized = true
}

function uriOf(line: Buffer): string {
  const message: unknown = JSON.parse(line.toString('utf8'))
  const params = isObject(message) && isObject(message.params) ? message.params : {}
  return `resource ${String(params.uri)}`
}

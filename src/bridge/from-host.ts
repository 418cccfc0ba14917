import { notificationLine, withId } from './answers.js'
import { type Id, isId, isObject, type Message, readMessage } from './message.js'
import { onReplayAnswer } from './opening.js'
import type { Listen, Relay } from './relay.js'

/** Names the subscription that a notification belongs to (MCP 2026-07-28, subscriptions). */
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'
/** How long a friendly end of one subscription is held back: a host that stops ends all of them just before its stream. */
const LISTEN_END_MS = 1000

/** Takes one line of the host. */
export function fromHost(relay: Relay, line: Buffer): void {
  const message = readMessage(line)
  if (message.kind === 'response') onResponse(relay, line, message)
  else if (message.kind === 'request') onRequest(relay, line, message.id)
  else if (message.kind === 'notification') onNotification(relay, line, message)
  else if (message.kind === 'invalid') relay.out.note(`Kiki's host sent a line that is no message (${message.message})`)
}

function onResponse(relay: Relay, line: Buffer, message: Message & { kind: 'response' }): void {
  const { id } = message
  const replay = id === null ? undefined : relay.replays.get(id)
  const listen = id === null ? undefined : relay.listens.get(id)
  if (id === null) relay.out.toClient(line)
  else if (replay) {
    relay.replays.delete(id)
    onReplayAnswer(relay, replay, message.failed)
  } else if (listen) endListen(relay, id, listen, line, message.failed)
  else {
    if (relay.pending.get(id) === 'initialize' && message.failed) relay.opening.initialize = undefined
    // What answers nobody is dropped: it could only be taken for another request's answer.
    if (relay.pending.delete(id) || relay.cancelled.delete(id)) relay.out.toClient(line)
  }
}

/**
 * A host that stops first ends every subscription with a result. The client's subscription goes on with the next host, so that result
 * is held back until it is clear that the stream stays.
 */
function endListen(relay: Relay, id: Id, listen: Listen, line: Buffer, failed: boolean): void {
  const end = () => {
    relay.listens.delete(id)
    relay.out.toClient(line)
  }
  if (failed || !listen.acknowledged) end()
  else listen.ending ??= setTimeout(end, LISTEN_END_MS)
}

/** The ids of a second host may repeat those of the first that the client has not answered, so the client sees ids of the bridge's. */
function onRequest(relay: Relay, line: Buffer, id: Id): void {
  const seen = relay.streams === 1 ? id : `${relay.idPrefix}${relay.streams}:${JSON.stringify(id)}`
  relay.asked.set(seen, id)
  relay.out.toClient(seen === id ? line : withId(line, seen))
}

function onNotification(relay: Relay, line: Buffer, message: Message & { kind: 'notification' }): void {
  const { method, params } = message
  if (method === 'notifications/cancelled') onCancelled(relay, line, params)
  else if (method === 'notifications/subscriptions/acknowledged') onAcknowledged(relay, line, params)
  else relay.out.toClient(line)
}

function onCancelled(relay: Relay, line: Buffer, params: Record<string, unknown>): void {
  const id = params.requestId
  const seen = [...relay.asked].find(([, hostId]) => hostId === id)?.[0]
  if (seen !== undefined) {
    relay.asked.delete(seen)
    relay.out.toClient(seen === id ? line : notificationLine('notifications/cancelled', { ...params, requestId: seen }))
  } else if (isId(id) && relay.listens.delete(id)) {
    // In the 2026 era a host may also end a subscription this way.
    relay.out.toClient(line)
  }
}

/** The client has to see one acknowledgement; after a reconnect it needs to hear what it may have missed instead. */
function onAcknowledged(relay: Relay, line: Buffer, params: Record<string, unknown>): void {
  const meta = isObject(params._meta) ? params._meta : {}
  const id = meta[SUBSCRIPTION_ID]
  const listen = isId(id) ? relay.listens.get(id) : undefined
  if (!listen) return
  if (!listen.acknowledged) {
    listen.acknowledged = true
    relay.out.toClient(line)
    return
  }
  const honoured = isObject(params.notifications) ? params.notifications : {}
  for (const [flag, kind] of LIST_KINDS) {
    if (honoured[flag] !== true) continue
    relay.out.toClient(notificationLine(`notifications/${kind}/list_changed`, { _meta: { [SUBSCRIPTION_ID]: id } }))
  }
}

const LIST_KINDS = [
  ['toolsListChanged', 'tools'],
  ['resourcesListChanged', 'resources'],
  ['promptsListChanged', 'prompts'],
] as const

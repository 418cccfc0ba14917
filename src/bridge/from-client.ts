import { errorLine, withId } from './answers.js'
import { type Id, idOfCutLine, isId, readMessage } from './message.js'
import { type Relay, removeWaiting, wait } from './relay.js'
import { sendNotification, sendRequest } from './send.js'

/** Longest line that is passed on, either way (GU-63). */
export const MAX_LINE_BYTES = 16 * 1024 * 1024

/** Cancelled requests of which a late answer is still recognised. */
const MAX_CANCELLED = 1000

/** Takes one line of the client: passes it on, keeps it for the next host, or answers it at once. */
export function fromClient(relay: Relay, line: Buffer): void {
  const message = readMessage(line)
  if (message.kind === 'invalid') {
    relay.out.toClient(errorLine(freeId(relay, message.id), message.code, message.message))
  } else if (message.kind === 'response') {
    answerHost(relay, line, message.id)
  } else if (message.kind === 'notification') {
    if (message.method === 'notifications/cancelled') cancel(relay, line, message.params.requestId)
    else if (relay.phase === 'open') sendNotification(relay, line, message.method)
    else wait(relay, line, message)
  } else if (message.kind === 'request') {
    if (isInUse(relay, message.id)) relay.out.toClient(errorLine(message.id, -32600, IN_USE))
    else if (relay.phase === 'open') sendRequest(relay, line, message.id, message.method)
    else wait(relay, line, message)
  }
}

const IN_USE =
  'A request with this id is still in flight on this connection, so its answer could not be told apart. Use a new id.'

/** Answers a line that was too long to be taken (FC-T02): the connection goes on. */
export function tooLongFromClient(relay: Relay, head: Buffer, tail: Buffer): void {
  const id = freeId(relay, idOfCutLine(head, tail))
  const limit = `${MAX_LINE_BYTES / 1024 / 1024} MiB (${MAX_LINE_BYTES} bytes)`
  const message = `This message is longer than the limit of ${limit} for one line. Nothing of it was run. Send the content in smaller parts.`
  relay.out.toClient(errorLine(id, -32600, message, { limit_bytes: MAX_LINE_BYTES }))
}

/**
 * A cancellation of something that is not in flight is ignored, as the protocol asks, before it can decide a new stream's era; so is
 * one of `initialize`, which may not be cancelled (FC-T15).
 */
function cancel(relay: Relay, line: Buffer, id: unknown): void {
  if (!isId(id)) return
  const waiting = relay.waiting.find(({ message }) => message.kind === 'request' && message.id === id)
  if (waiting) {
    if (waiting.message.method !== 'initialize') removeWaiting(relay, waiting)
    return
  }
  const listen = relay.listens.get(id)
  const method = relay.pending.get(id)
  if (listen) {
    clearTimeout(listen.ending)
    relay.listens.delete(id)
  } else if (method !== undefined && method !== 'initialize') {
    relay.pending.delete(id)
    relay.cancelled.add(id)
    for (const oldest of relay.cancelled) {
      if (relay.cancelled.size <= MAX_CANCELLED) break
      relay.cancelled.delete(oldest)
    }
  } else return
  if (relay.phase === 'open') relay.out.toHost(line)
}

/** The client's answer to a request of the host; one to a request of an earlier host is dropped. */
function answerHost(relay: Relay, line: Buffer, id: Id | null): void {
  const hostId = id === null ? undefined : relay.asked.get(id)
  if (id === null || hostId === undefined) return
  relay.asked.delete(id)
  relay.out.toHost(hostId === id ? line : withId(line, hostId))
}

function isInUse(relay: Relay, id: Id): boolean {
  return (
    relay.pending.has(id) ||
    relay.listens.has(id) ||
    relay.cancelled.has(id) ||
    relay.waiting.some(({ message }) => message.kind === 'request' && message.id === id)
  )
}

/** An error must not be taken for the answer to another request that has the same id. */
function freeId(relay: Relay, id: Id | null): Id | null {
  return id !== null && isInUse(relay, id) ? null : id
}

import { KikiError } from '../lib/errors.js'
import { lostLine, notificationLine, withId } from './answers.js'
import { type Relay, takeWaiting } from './relay.js'
import { sendNotification, sendRequest } from './send.js'

/** A stream is open: brings the new host into the client's state, then lets lines pass. */
export function onConnected(relay: Relay): void {
  relay.streams++
  const { initialize } = relay.opening
  if (!initialize) open(relay)
  else if ([...relay.pending.values()].includes('initialize')) {
    // The client still waits for this answer. Opening has no effects, so it is asked again under the client's own id.
    relay.out.toHost(initialize)
    open(relay)
  } else {
    relay.phase = 'replaying'
    replay(relay, initialize, 'initialize')
  }
}

export function onReplayAnswer(relay: Relay, kind: 'initialize' | 'setting', failed: boolean): void {
  if (kind === 'setting') return
  if (failed) {
    const message = "Kiki's host came back but refused to open this connection again."
    relay.out.fail(new KikiError('conflict', message, { hint: 'Restart this MCP server in your application.' }))
    return
  }
  if (relay.opening.initialized) relay.out.toHost(notificationLine('notifications/initialized'))
  for (const line of relay.opening.settings.values()) replay(relay, line, 'setting')
  open(relay)
  // Sessions may have been closed, tools withdrawn, meanwhile.
  if (relay.opening.initialized) relay.out.toClient(notificationLine('notifications/tools/list_changed'))
}

/** The stream is gone. What was in flight may have run, so it is answered, never sent again (GU-23). */
export function onDisconnected(relay: Relay): void {
  relay.phase = 'waiting'
  relay.replays.clear()
  relay.cancelled.clear()
  for (const [id, method] of relay.pending) {
    if (method === 'initialize') continue
    relay.pending.delete(id)
    relay.out.toClient(lostLine(id, method))
  }
  for (const id of relay.asked.keys()) {
    relay.out.toClient(notificationLine('notifications/cancelled', { requestId: id, reason: "Kiki's host went away." }))
  }
  relay.asked.clear()
  for (const listen of relay.listens.values()) {
    clearTimeout(listen.ending)
    listen.ending = undefined
  }
}

function open(relay: Relay): void {
  relay.phase = 'open'
  for (const { line } of relay.listens.values()) relay.out.toHost(line)
  for (const { line, message } of takeWaiting(relay)) {
    if (message.kind === 'request') sendRequest(relay, line, message.id, message.method)
    else sendNotification(relay, line, message.method)
  }
}

function replay(relay: Relay, line: Buffer, kind: 'initialize' | 'setting'): void {
  const id = `${relay.idPrefix}${relay.streams}.${relay.replays.size}`
  relay.replays.set(id, kind)
  relay.out.toHost(withId(line, id))
}

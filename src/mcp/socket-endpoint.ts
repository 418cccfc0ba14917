import type { Socket } from 'node:net'
import type { Implementation, Server, Transport } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Caller } from '../calls/caller.js'
import { messageOf } from '../lib/errors.js'
import { createDirectCalls, type DirectCalls } from './direct-calls.js'
import { createLineTransport } from './line-transport.js'
import { callerOf, clientInfo, createServer, type Principal, type ServerDeps } from './server.js'

/** Longest line that a bridge may send, in bytes (GU-63). */
const MAX_LINE_BYTES = 16 * 1024 * 1024

/** After this time, in milliseconds, a bridge that an earlier host served has reconnected (GU-23: within 10 s) or is gone. */
const RECONNECTED_MS = 10 * 60_000

export interface BridgeStreams {
  /** Serves one bridge: both protocol eras over newline-delimited JSON-RPC (design §2). */
  serve(socket: Socket, principal: Principal): void
  count(): number
  /** Forgets attachments of bridges that ended while no host ran; returns a function that stops this from happening. */
  sweepLater(): () => void
  /** Ends every stream because the host stops: its bridges come back to the next one, still attached (SE-15). */
  closeAll(): Promise<void>
}

/** Every open bridge stream; those of a revoked or deleted connection are ended at once (AP-09). */
export function createBridgeStreams(deps: ServerDeps): BridgeStreams {
  const open = new Map<Socket, Principal & { close(): Promise<void> }>()
  const holders = () => new Set([...open.values()].map(({ holder }) => holder))

  deps.events.on('connection.changed', async ({ connectionId, status }) => {
    if (status !== 'revoked' && status !== 'deleted') return
    const streams = [...open.values()].filter((stream) => stream.connectionId === connectionId)
    await Promise.all(streams.map((stream) => stream.close()))
  })

  /** A bridge that has ended holds nothing any more; one that only lost an older stream still does. */
  function forget({ connectionId, holder }: Principal): void {
    if (holders().has(holder)) return
    deps.sessions
      .detach(connectionId, holder)
      .then(() => deps.events.emit('catalog.changed', { connectionId, holder }))
      .catch((error: unknown) => deps.log.error({ holder, error: messageOf(error) }, 'a bridge could not be detached'))
  }

  return {
    serve(socket, principal) {
      let direct: DirectCalls | undefined
      const transport = createLineTransport(socket, MAX_LINE_BYTES, (message) => direct?.take(message) ?? false)
      const handle = serveStdio(
        ({ era }) => {
          const server = createServer(deps, principal, era)
          if (era === 'legacy') direct = directCalls(deps, principal, server, transport)
          return server
        },
        {
          transport,
          onerror: (error) =>
            deps.log.debug({ connection: principal.connectionId, error: messageOf(error) }, 'bridge stream'),
        },
      )
      const close = async () => {
        open.delete(socket)
        await handle.close()
        socket.destroy()
      }
      open.set(socket, { ...principal, close })
      socket.on('error', (error) =>
        deps.log.debug({ connection: principal.connectionId, error: error.message }, 'bridge socket'),
      )
      const gone = () => {
        // Whoever closed it from here took it out before.
        if (open.has(socket)) void close().then(() => forget(principal))
      }
      // Sockets of an HTTP server may stay half open: the bridge's end alone would not close this one (GU-65).
      socket.on('end', gone).on('close', gone)
    },
    count: () => open.size,
    sweepLater() {
      const timer = setTimeout(() => {
        deps.sessions
          .keepHolders('bridge', holders())
          .catch((error: unknown) => deps.log.error({ error: messageOf(error) }, 'attachments could not be swept'))
      }, RECONNECTED_MS)
      return () => clearTimeout(timer)
    },
    async closeAll() {
      await Promise.all([...open.values()].map((stream) => stream.close()))
    },
  }
}

/** The short way of a 2025-era stream, which ends with its server. */
function directCalls(deps: ServerDeps, principal: Principal, server: Server, transport: Transport): DirectCalls {
  const caller = callerOf(principal, 'legacy')
  let named: Implementation | undefined
  let from: Caller = caller
  const callerNow = () => {
    const given = server.getClientVersion()
    if (given === undefined) return undefined
    if (given !== named) from = { ...caller, client: clientInfo(given) }
    named = given
    return from
  }
  const direct = createDirectCalls(deps, callerNow, transport)
  const { onclose } = server
  server.onclose = () => {
    onclose?.()
    direct.end()
  }
  return direct
}

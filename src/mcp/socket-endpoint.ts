import type { Socket } from 'node:net'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { messageOf } from '../lib/errors.js'
import { createServer, type Principal, type ServerDeps } from './server.js'

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
      // The SDK adds a listener for every delayed write.
      socket.setMaxListeners(0)
      const handle = serveStdio(({ era }) => createServer(deps, principal, era), {
        transport: new StdioServerTransport(socket, socket, { maxBufferSize: MAX_LINE_BYTES }),
        onerror: (error) =>
          deps.log.debug({ connection: principal.connectionId, error: messageOf(error) }, 'bridge stream'),
      })
      const close = async () => {
        open.delete(socket)
        await handle.close()
        socket.destroy()
      }
      open.set(socket, { ...principal, close })
      socket.on('error', (error) =>
        deps.log.debug({ connection: principal.connectionId, error: error.message }, 'bridge socket'),
      )
      // An HTTP server's sockets stay half open: without this, a bridge that ends while nothing is said would never be noticed.
      socket.on('end', () => socket.destroy())
      socket.on('close', () => {
        // Whoever closed it from here took it out before.
        if (open.has(socket)) void close().then(() => forget(principal))
      })
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

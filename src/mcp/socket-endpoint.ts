import type { Socket } from 'node:net'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { messageOf } from '../lib/errors.js'
import { createServer, type Principal, type ServerDeps } from './server.js'

/** Longest line that a bridge may send, in bytes (GU-63). */
const MAX_LINE_BYTES = 16 * 1024 * 1024

export interface BridgeStreams {
  /** Serves one bridge: both protocol eras over newline-delimited JSON-RPC (design §2). */
  serve(socket: Socket, principal: Principal): void
  count(): number
  closeAll(): Promise<void>
}

/** Every open bridge stream; those of a revoked or deleted connection are ended at once (AP-09). */
export function createBridgeStreams(deps: ServerDeps): BridgeStreams {
  const open = new Map<Socket, { connectionId: string; close(): Promise<void> }>()

  deps.events.on('connection.changed', async ({ connectionId, status }) => {
    if (status !== 'revoked' && status !== 'deleted') return
    const streams = [...open.values()].filter((stream) => stream.connectionId === connectionId)
    await Promise.all(streams.map((stream) => stream.close()))
  })

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
      open.set(socket, { connectionId: principal.connectionId, close })
      socket.on('error', (error) =>
        deps.log.debug({ connection: principal.connectionId, error: error.message }, 'bridge socket'),
      )
      socket.on('close', () => void close())
    },
    count: () => open.size,
    async closeAll() {
      await Promise.all([...open.values()].map((stream) => stream.close()))
    },
  }
}

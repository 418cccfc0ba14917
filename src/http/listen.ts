import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { settledWithin } from '../lib/async.js'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import type { Channel } from './guards.js'

type Fetch = (request: Request, env: object) => Response | Promise<Response>

export interface HttpServer {
  server: Server
  /** Takes no more requests, lets those that run finish for a moment, then ends every connection, upgraded ones too. */
  close(): Promise<void>
}

/** How long running requests may go on when the server closes: `POST /api/stop` gets its answer. */
const CLOSE_MS = 250

/** An HTTP server whose requests are marked with the channel they came by. `onError` hears of connections that could not be taken. */
export function httpServer(fetch: Fetch, channel: Channel, onError: (error: Error) => void): HttpServer {
  const server = createServer(getRequestListener((request, env) => fetch(request, { ...env, channel })))
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // Without a listener, one connection too many for the open files would end the host.
  server.on('error', onError)
  return {
    server,
    async close() {
      if (!server.listening) return
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      if (await settledWithin(closed, CLOSE_MS)) return
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/**
 * Listens on a Unix socket that only this user can reach. The home's lock is held, so a socket that stands there is stale.
 * @throws KikiError `conflict` where something else stands there, or the path cannot be bound.
 */
export async function listenOnSocket({ server }: HttpServer, path: string): Promise<void> {
  if (process.platform === 'win32') return listen(server, { path }, path)
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there !== undefined && !there.isSocket()) {
    throw new KikiError('conflict', `${path} is no socket, and Kiki does not remove what it did not make.`, {
      hint: 'Move it out of the way, then start again.',
    })
  }
  rmSync(path, { force: true })
  await listen(server, { path }, path)
  chmodSync(path, 0o600)
}

/**
 * Listens on 127.0.0.1; port 0 takes any free one.
 * @returns the port.
 * @throws KikiError `conflict` where the port is taken or may not be used.
 */
export async function listenOnLoopback({ server }: HttpServer, port: number): Promise<number> {
  await listen(server, { host: '127.0.0.1', port }, `127.0.0.1:${port}`)
  return (server.address() as AddressInfo).port
}

const HINTS: Record<string, string> = {
  EADDRINUSE: 'Something else listens there: choose another --port, or 0 for any free one.',
  EACCES: 'This user may not listen there: choose a --port above 1023, or 0 for any free one.',
}

function listen(server: Server, where: object, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      const hint = HINTS[systemCode(error) ?? ''] ?? 'See that the folder exists and can be written.'
      reject(new KikiError('conflict', `Kiki cannot listen on ${name}: ${messageOf(error)}.`, { hint, cause: error }))
    }
    server.once('error', fail)
    server.listen(where, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

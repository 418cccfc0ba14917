import { chmodSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import type { Channel } from './guards.js'

type Fetch = (request: Request, env: object) => Response | Promise<Response>

/** An HTTP server whose requests are marked with the channel they came by. */
export function httpServer(fetch: Fetch, channel: Channel): Server {
  return createServer(getRequestListener((request, env) => fetch(request, { ...env, channel })))
}

/** Listens on a Unix socket that only this user can reach. The home's lock is held, so what stands there is stale. */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (process.platform !== 'win32') rmSync(path, { force: true })
  await listen(server, { path }, path)
  if (process.platform !== 'win32') chmodSync(path, 0o600)
}

/** Listens on 127.0.0.1; port 0 takes any free one. @returns the port. */
export async function listenOnLoopback(server: Server, port: number): Promise<number> {
  await listen(server, { host: '127.0.0.1', port }, `127.0.0.1:${port}`)
  return (server.address() as AddressInfo).port
}

/** Ends a server and every connection to it. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
}

function listen(server: Server, where: object, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const hint =
        systemCode(error) === 'EADDRINUSE'
          ? 'Something else listens there: choose another --port.'
          : 'See the reason above.'
      reject(new KikiError('conflict', `Kiki cannot listen on ${name}: ${messageOf(error)}`, { hint, cause: error }))
    })
    server.listen(where, resolve)
  })
}

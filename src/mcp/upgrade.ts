import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { mustAllowClients } from '../calls/steps.js'
import type { Connections } from '../grants/connections.js'
import type { Credentials } from '../grants/credentials.js'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import type { Sessions } from '../sessions/sessions.js'
import type { Principal } from './server.js'
import type { BridgeStreams } from './socket-endpoint.js'

export interface UpgradeDeps {
  credentials: Credentials
  connections: Connections
  sessions: Sessions
  streams: BridgeStreams
  externalClients: boolean
  log: Log
}

/** Turns `GET /bridge` with `Upgrade: kiki-bridge` and a local credential into a bridge stream. Mounted on the local socket only. */
export function acceptBridges(server: Server, deps: UpgradeDeps): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', (error) => deps.log.debug({ error: error.message }, 'bridge socket'))
    admit(deps, request).then(
      (principal) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\n\r\n')
        if (head.length > 0) socket.unshift(head)
        socket.setNoDelay(true)
        deps.streams.serve(socket, principal)
      },
      (error: unknown) => refuse(deps, socket, error),
    )
  })
}

async function admit(deps: UpgradeDeps, request: IncomingMessage): Promise<Principal> {
  // What is no URL at all, such as `//`, is nothing that can be upgraded either.
  const target = request.url ?? '/'
  const url = new URL(URL.canParse(target, 'http://kiki') ? target : '/', 'http://kiki')
  if (url.pathname !== '/bridge' || request.headers.upgrade?.toLowerCase() !== 'kiki-bridge') {
    throw new KikiError('not_found', 'Only /bridge can be upgraded, to kiki-bridge.')
  }
  if (url.searchParams.has('discovery')) {
    throw new KikiError('tool_unavailable', 'This version of Kiki cannot serve tools by search yet.', {
      hint: 'Start the bridge without --discovery.',
    })
  }
  mustAllowClients(deps)
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
  const { connectionId, bridgeId } = await deps.credentials.verify(token)
  const connection = deps.connections.require(connectionId)
  if (connection.status === 'revoked')
    throw new KikiError('connection_revoked', 'The owner has revoked this connection.')
  const ref = url.searchParams.get('session')
  if (ref === null) return { connectionId, holder: `bridge:${bridgeId}` }
  const session = deps.sessions.ofConnection(connectionId, ref)
  return { connectionId, holder: `bridge:${bridgeId}`, fixedSession: session.ref }
}

function refuse({ log }: UpgradeDeps, socket: Socket, error: unknown): void {
  const known = error instanceof KikiError
  if (!known) log.error({ error: messageOf(error) }, 'a bridge was refused by a bug')
  const told = known ? error : new KikiError('internal_error', 'Kiki failed; see its log.')
  const body = JSON.stringify({ error: { code: told.code, message: told.message, hint: told.hint } })
  socket.end(
    `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

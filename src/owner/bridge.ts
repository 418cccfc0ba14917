import { Hono } from 'hono'
import { z } from 'zod'
import { authenticate, mustAllowClients } from '../calls/steps.js'
import { jsonBody } from '../http/json-body.js'
import { KikiError } from '../lib/errors.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'

const credentialRequest = z.strictObject({
  client: z.string().max(256),
  bridge: z.string().regex(/^bridge_[A-Za-z0-9_-]{8,80}$/),
})

/** `POST /bridge/credential`, over the local socket only: a short-lived credential for one connection (GR-04). */
export function bridgeRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().post('/credential', jsonBody(credentialRequest), async (c) => {
    if (c.env.channel !== 'socket') {
      throw new KikiError('permission_denied', 'Local credentials are given out over the local socket only.')
    }
    const { client, bridge } = c.req.valid('json')
    mustAllowClients(deps)
    const connection = deps.connections.require(client)
    if (connection.kind !== 'local') {
      throw new KikiError(
        'permission_denied',
        `Connection ${client} is of kind ${connection.kind}; a bridge needs a local one.`,
        {
          hint: 'Make one with `kiki connections add --kind local`.',
        },
      )
    }
    if (connection.status !== 'paused') authenticate(deps, { connectionId: client, holder: '' })
    return c.json({ credential: await deps.credentials.issue({ connectionId: client, bridgeId: bridge }) }, 200)
  })
}

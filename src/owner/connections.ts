import { Hono } from 'hono'
import { type Connection, changedConnectionSchema, newConnectionSchema } from '../grants/connections.js'
import { jsonBody } from '../http/json-body.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'

/** `/connections`: grants, as the owner makes, changes and ends them (CL-04, CL-05). */
export function connectionRoutes(deps: OwnerDeps) {
  const view = (id: string) => connectionView(deps.connections.require(id))
  return new Hono<OwnerEnv>()
    .get('/', (c) => c.json({ connections: deps.connections.list().map(connectionView) }, 200))
    .post('/', jsonBody(newConnectionSchema), async (c) => {
      const { connection, token } = await deps.connections.create(c.req.valid('json'))
      return c.json({ ...connectionView(connection), ...(token === undefined ? {} : { token }) }, 200)
    })
    .get('/:id', (c) => c.json(view(c.req.param('id')), 200))
    .patch('/:id', jsonBody(changedConnectionSchema), async (c) => {
      const { cancelled } = await deps.lifecycle.change(c.req.param('id'), c.req.valid('json'))
      return c.json({ ...view(c.req.param('id')), cancelled }, 200)
    })
    .post('/:id/pause', async (c) => {
      await deps.lifecycle.pause(c.req.param('id'))
      return c.json(view(c.req.param('id')), 200)
    })
    .post('/:id/resume', async (c) => {
      await deps.lifecycle.resume(c.req.param('id'))
      return c.json(view(c.req.param('id')), 200)
    })
    .post('/:id/revoke', async (c) => {
      const { cancelled } = await deps.lifecycle.revoke(c.req.param('id'))
      return c.json({ ...view(c.req.param('id')), cancelled }, 200)
    })
    .delete('/:id', async (c) => {
      await deps.lifecycle.deleteConnection(c.req.param('id'))
      return c.json({ deleted: c.req.param('id') }, 200)
    })
}

/** The fields of GR-02, one beside the other. */
function connectionView(connection: Connection) {
  return {
    id: connection.id,
    name: connection.name,
    kind: connection.kind,
    status: connection.status,
    policy_version: connection.policyVersion,
    ...connection.grant,
    expires_at: time(connection.expiresAt),
    created_at: time(connection.createdAt),
    last_used_at: time(connection.lastUsedAt),
  }
}

/** RFC 3339, or null. */
export function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

import { Hono } from 'hono'
import { type Connection, changedConnectionSchema, newConnectionSchema } from '../grants/connections.js'
import { jsonBody } from '../http/json-body.js'
import { FAMILIES } from '../policy/modes.js'
import { CATALOG } from '../tools/catalog.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'

/** `/connections`: grants, as the owner makes, changes and ends them (CL-04, CL-05). */
export function connectionRoutes(deps: OwnerDeps) {
  const view = (id: string) => connectionView(deps.connections.require(id))
  const statusOf = (id: string) => deps.connections.require(id).status
  return new Hono<OwnerEnv>()
    .get('/', (c) => c.json({ connections: deps.connections.list().map(connectionView) }, 200))
    .post('/', jsonBody(newConnectionSchema), async (c) => {
      const { connection, token } = await deps.connections.create(c.req.valid('json'))
      const made = {
        ...connectionView(connection),
        ...(await commandsOf(deps, connection.id)),
        families_without_tools: withoutTools(connection.grant.tools),
      }
      return c.json({ ...made, ...(token === undefined ? {} : { token }) }, 200)
    })
    .get('/:id', async (c) =>
      c.json({ ...view(c.req.param('id')), ...(await commandsOf(deps, c.req.param('id'))) }, 200),
    )
    .patch('/:id', jsonBody(changedConnectionSchema), async (c) => {
      const { cancelled } = await deps.lifecycle.change(c.req.param('id'), c.req.valid('json'))
      return c.json({ ...view(c.req.param('id')), ...(await commandsOf(deps, c.req.param('id'))), cancelled }, 200)
    })
    .post('/:id/pause', async (c) => {
      const before = statusOf(c.req.param('id'))
      const { cancelled } = await deps.lifecycle.pause(c.req.param('id'))
      return c.json({ ...view(c.req.param('id')), cancelled, changed: before !== 'paused' }, 200)
    })
    .post('/:id/resume', async (c) => {
      const before = statusOf(c.req.param('id'))
      await deps.lifecycle.resume(c.req.param('id'))
      return c.json({ ...view(c.req.param('id')), changed: before !== 'active' }, 200)
    })
    .post('/:id/revoke', async (c) => {
      const before = statusOf(c.req.param('id'))
      const { cancelled } = await deps.lifecycle.revoke(c.req.param('id'))
      return c.json({ ...view(c.req.param('id')), cancelled, changed: before !== 'revoked' }, 200)
    })
    .delete('/:id', async (c) => {
      await deps.lifecycle.deleteConnection(c.req.param('id'))
      return c.json({ deleted: c.req.param('id') }, 200)
    })
}

/** Families that a grant names and of which this version has no tool, so that nobody waits for one. */
function withoutTools(granted: readonly string[]): string[] {
  return FAMILIES.filter((family) => granted.includes(family) && !CATALOG.some((tool) => tool.family === family))
}

/** Plainly, what commands of a connection can do (SB-04). */
async function commandsOf({ connections, sandboxes }: OwnerDeps, id: string): Promise<{ commands: string }> {
  const { allow_commands, sandbox } = connections.require(id).grant
  if (!allow_commands) return { commands: 'not allowed' }
  const engine = await sandboxes.engine()
  if (sandbox !== 'off' && 'start' in engine) return { commands: `in a sandbox (${engine.name})` }
  if (sandbox === 'required') return { commands: 'refused, because no sandbox works here: see `kiki doctor`' }
  return { commands: 'without a sandbox: they have your own rights on this machine' }
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

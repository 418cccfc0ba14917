import { Hono } from 'hono'
import { z } from 'zod'
import { explainCall } from '../calls/explain.js'
import { jsonBody } from '../http/json-body.js'
import { KikiError } from '../lib/errors.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'

const explainSchema = z.strictObject({
  session: z.string(),
  tool: z.string().min(1),
  /** A path or a command, or all arguments by name. */
  argument: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
})

/** `/policy`: why a call would run, wait or be refused, and the standing rules (PO-02, PO-06, CF-04). */
export function policyRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>()
    .post('/explain', jsonBody(explainSchema), async (c) =>
      c.json(await explainCall(deps.gate, c.req.valid('json')), 200),
    )
    .get('/rules', (c) => {
      const rules = deps.rules.current().map(({ decision, pattern, connection, workspace, from }) => ({
        decision,
        pattern,
        connection,
        workspace,
        from,
      }))
      const own = deps.rules.listOwn().map(({ id, made_at }) => ({ id, made_at: time(made_at) }))
      return c.json({ rules, own }, 200)
    })
    .delete('/rules/:id', async (c) => {
      const id = Number(c.req.param('id'))
      if (!Number.isSafeInteger(id))
        throw new KikiError('not_found', 'Owner rules have numbers.', { hint: 'Use `kiki policy rules`.' })
      await deps.rules.remove(id)
      const { cancelled } = await deps.lifecycle.policyChanged()
      return c.json({ removed: id, cancelled }, 200)
    })
    .post('/reload', async (c) => c.json(await deps.reload(), 200))
}

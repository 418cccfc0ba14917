import { Hono } from 'hono'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'

/** `GET /status` (CL-02) and `POST /stop`. */
export function hostRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>()
    .get('/status', async (c) =>
      c.json(
        {
          running: true,
          pid: deps.host.pid,
          version: deps.host.version,
          home: deps.host.home,
          uptime_s: Math.floor((deps.clock.monotonic() - deps.host.startedSteady) / 1000),
          owner_url: deps.host.ownerUrl(),
          external: { enabled: false, clients_allowed: deps.externalClients },
          connections: deps.connections.count(),
          sessions: deps.sessions.count(),
          operations: {
            running: deps.operations.lives().length,
            waiting_approval: deps.store.operations.countByStatus('waiting_approval'),
          },
          upstreams: 0,
          ...(await commandRights(deps)),
          approval_consumers: deps.approvals.consumers.count(),
        },
        200,
      ),
    )
    .post('/stop', (c) => {
      deps.stop()
      return c.json({ stopping: true, pid: deps.host.pid }, 200)
    })
}

/** What confines commands here, and how many connections' commands have the owner's own rights (SB-04). */
async function commandRights({ sandboxes, connections }: OwnerDeps) {
  const engine = await sandboxes.engine()
  const works = 'start' in engine
  const unconfined = connections
    .list()
    .filter(({ status, grant }) => status !== 'revoked' && grant.allow_commands && isUnconfined(grant.sandbox, works))
  return { sandbox: works ? engine.name : 'none', unconfined_connections: unconfined.length }
}

function isUnconfined(sandbox: 'required' | 'preferred' | 'off', works: boolean): boolean {
  return sandbox === 'off' || (sandbox === 'preferred' && !works)
}

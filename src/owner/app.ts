import { Hono } from 'hono'
import { approvalRoutes } from './approvals.js'
import { auditRoutes } from './audit.js'
import type { OwnerEnv } from './auth.js'
import { backupRoutes } from './backup.js'
import { bridgeRoutes } from './bridge.js'
import { changeRoutes, operationUndoRoutes, sessionUndoRoutes } from './changes.js'
import { connectionRoutes } from './connections.js'
import type { OwnerDeps } from './deps.js'
import { doctorRoutes } from './doctor.js'
import { eventRoutes } from './events.js'
import { hostRoutes } from './host.js'
import type { loginRoutes } from './login.js'
import { operationRoutes } from './operations.js'
import { policyRoutes } from './policy.js'
import { processRoutes } from './processes.js'
import { sessionRoutes } from './sessions.js'

/** The owner API's routes, one file a resource; `createOwnerFront` puts the guards before and the sign-in beside them. */
export function ownerRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>()
    .route('/', hostRoutes(deps))
    .route('/connections', connectionRoutes(deps))
    .route('/sessions', sessionRoutes(deps))
    .route('/sessions', sessionUndoRoutes(deps))
    .route('/approvals', approvalRoutes(deps))
    .route('/events', eventRoutes(deps))
    .route('/policy', policyRoutes(deps))
    .route('/operations', operationRoutes(deps))
    .route('/operations', operationUndoRoutes(deps))
    .route('/processes', processRoutes(deps))
    .route('/doctor', doctorRoutes(deps))
    .route('/changes', changeRoutes(deps))
    .route('/audit', auditRoutes(deps))
    .route('/backup', backupRoutes(deps))
    .route('/bridge', bridgeRoutes(deps))
}

/** The whole owner API under `/api`, for typed clients (`hc`). */
export type OwnerApi = ReturnType<typeof typedApi>

/** Only its type is used: `createOwnerFront` mounts the same routes behind the guards. */
function typedApi(routes: ReturnType<typeof ownerRoutes>, login: ReturnType<typeof loginRoutes>) {
  return new Hono<OwnerEnv>().route('/api', login).route('/api', routes)
}

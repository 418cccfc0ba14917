import { isAbsolute } from 'node:path'
import { Hono } from 'hono'
import { z } from 'zod'
import { jsonBody } from '../http/json-body.js'
import { backupHome } from '../lifecycle/backup.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'

const backupRequest = z.strictObject({
  file: z.string().min(1).max(4096).refine(isAbsolute, 'must be an absolute path'),
})

/** `POST /backup` (CL-17): the host alone opens the database, so it makes the backup too (GU-40). */
export function backupRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().post('/', jsonBody(backupRequest), async (c) => {
    await deps.operations.settleRecords()
    const { store, paths, clock, gate } = deps
    return c.json(await backupHome({ db: store.db, paths, clock, fence: gate.fence }, c.req.valid('json').file), 200)
  })
}

import { Hono } from 'hono'
import { environment } from '../config/environment.js'
import { readEngines } from '../lib/version.js'
import type { OwnerEnv } from './auth.js'
import { type Check, machineChecks, sandboxCheck } from './checks.js'
import type { OwnerDeps } from './deps.js'

/** `GET /doctor` (CL-16): what the running host finds. */
export function doctorRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().get('/', async (c) => {
    const { gate, paths, sandboxes, host } = deps
    const machine = await machineChecks({
      ...{ processes: gate.processes, paths, env: environment(), engines: readEngines() },
    })
    const checks: Check[] = [
      ...machine,
      sandboxCheck(await sandboxes.engine()),
      database(deps),
      { name: 'listener', state: 'ok', says: `${host.ownerUrl()}, and the local socket ${paths.socket}` },
    ]
    return c.json({ checks }, 200)
  })
}

/** The host writes with every sync (GU-07); damage is found when the database is opened (GU-43). */
function database({ store }: OwnerDeps): Check {
  const value = (name: string) => store.db.pragma(name, { simple: true })
  const says = `open, ${value('journal_mode')}, synchronous ${value('synchronous')}`
  if (value('journal_mode') === 'wal' && value('synchronous') === 2) return { name: 'database', state: 'ok', says }
  return { name: 'database', state: 'broken', says, mend: 'Restart the host; if it stays so, report it.' }
}

import { lstatSync } from 'node:fs'
import { Hono } from 'hono'
import { environment } from '../config/environment.js'
import type { HomePaths } from '../config/home.js'
import { messageOf } from '../lib/errors.js'
import { readEngines } from '../lib/version.js'
import { damageOf } from '../store/soundness.js'
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
      await listener(host.ownerUrl(), paths),
    ]
    return c.json({ checks }, 200)
  })
}

/** The host writes with every sync (GU-07), and the file is whole (GU-43). */
function database({ store, paths }: OwnerDeps): Check {
  const value = (name: string) => store.db.pragma(name, { simple: true })
  const says = `${paths.database}, ${value('journal_mode')}, synchronous ${value('synchronous')}`
  const damage = damageOf(store.db, paths.database)
  if (damage !== undefined) {
    const mend = 'Stop the host and restore a backup: kiki restore FILE.'
    return { name: 'database', state: 'broken', says: `${paths.database} is damaged (${damage})`, mend }
  }
  if (value('journal_mode') === 'wal' && value('synchronous') === 2) return { name: 'database', state: 'ok', says }
  return { name: 'database', state: 'broken', says, mend: 'Restart the host; if it stays so, report it.' }
}

/** Milliseconds that the listener may take for its answer. */
const LISTENER_MS = 5000

/** Whether the settings page's address leads to this host, which lets nobody in without a sign-in, and the socket is the owner's. */
async function listener(url: string, { socket }: HomePaths): Promise<Check> {
  const broken = (says: string, mend: string): Check => ({ name: 'listener', state: 'broken', says, mend })
  const stat = process.platform === 'win32' ? undefined : lstatSync(socket, { throwIfNoEntry: false })
  if (process.platform !== 'win32' && (stat?.isSocket() !== true || (stat.mode & 0o077) !== 0)) {
    return broken(`the local socket ${socket} is gone, or open to others`, 'Restart the host: kiki stop, kiki start.')
  }
  const answer = await fetch(`${url}/api/status`, { signal: AbortSignal.timeout(LISTENER_MS) }).catch(messageOf)
  if (typeof answer === 'string') {
    return broken(`${url} does not answer (${answer})`, 'See that no firewall holds 127.0.0.1, then restart the host.')
  }
  if (answer.status !== 401) {
    return broken(`${url} answers ${answer.status} where it should ask for a sign-in`, 'Stop the host, and report it.')
  }
  return { name: 'listener', state: 'ok', says: `${url}, and the local socket ${socket}` }
}

import { Hono } from 'hono'
import { z } from 'zod'
import { KikiError } from '../lib/errors.js'
import { endWords } from '../processes/background.js'
import type { ProcessRow } from '../store/processes.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'
import { query } from './query.js'

const listQuery = z.strictObject({
  session: z.string().optional(),
  connection: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
})

/** `/processes`: commands in the background, newest first (SH-03). */
export function processRoutes(deps: OwnerDeps) {
  const { background } = deps
  return new Hono<OwnerEnv>()
    .get('/', (c) => {
      const { session, connection, limit } = query(listQuery, c.req.query())
      const rows = background.all({ session, connection, limit })
      return c.json({ processes: rows.map((row) => processView(deps, row)) }, 200)
    })
    .post('/:id/stop', async (c) => {
      const id = c.req.param('id')
      const row = background.get(id)
      if (row === undefined) {
        throw new KikiError('not_found', `There is no process ${id}.`, {
          hint: 'List them with `kiki processes list`.',
        })
      }
      const stopped = await background.end((one) => one.id === id)
      return c.json({ ...processView(deps, background.get(id) ?? row), changed: stopped > 0 }, 200)
    })
}

function processView({ background }: OwnerDeps, row: ProcessRow) {
  return {
    id: row.id,
    operation: row.operation_id,
    connection: row.connection_id,
    session_ref: row.session_ref,
    command: row.command,
    cwd: row.cwd,
    status: row.status,
    /** The status in words. */
    state: endWords(row),
    exit_code: row.exit_code,
    signal: row.signal,
    output_bytes: background.bytes(row),
    started_at: time(row.started_at),
    ended_at: time(row.ended_at),
  }
}

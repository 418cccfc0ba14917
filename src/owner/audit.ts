import { Readable } from 'node:stream'
import { Hono } from 'hono'
import { z } from 'zod'
import type { Head } from '../audit/chain.js'
import { entryView } from '../audit/read.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'
import { query } from './query.js'

const listQuery = z.strictObject({
  connection: z.string().optional(),
  session: z.string().optional(),
  action: z.string().optional(),
  tool: z.string().optional(),
  status: z.string().optional(),
  /** RFC 3339, or a date. */
  since: z.union([z.iso.datetime({ offset: true }), z.iso.date()]).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  before: z.coerce.number().int().optional(),
})

const verifyQuery = z.strictObject({
  /** `SEQ:MAC` of an earlier export. */
  head: z
    .string()
    .regex(/^\d{1,15}:[0-9a-f]{64}$/, 'is not SEQ:MAC, as the last line of an export says it')
    .optional(),
})

/** `/audit`: the log of who did what and by which rule, newest first; all of it; whether it is whole (GU-68). */
export function auditRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>()
    .get('/', async (c) => {
      const { connection, session, since, limit, before, ...asked } = query(listQuery, c.req.query())
      const filter = {
        ...asked,
        ...(connection === undefined ? {} : { connectionId: connection }),
        ...(session === undefined ? {} : { sessionRef: session }),
        ...(since === undefined ? {} : { since: Date.parse(since) }),
      }
      await deps.operations.settleRecords()
      const rows = await deps.audit.list({ filter, before, limit })
      const shown = rows.slice(0, limit)
      const next = rows.length > limit ? { next_before: shown.at(-1)?.seq } : {}
      return c.json({ entries: shown.map(entryView), ...next }, 200)
    })
    .get('/export', async (c) => {
      await deps.operations.settleRecords()
      // Pieces are made as they are taken, however slowly that is.
      const lines = Readable.from(deps.audit.export(), { objectMode: false, highWaterMark: 1 })
      return c.body(Readable.toWeb(lines) as ReadableStream, 200, { 'Content-Type': 'application/jsonl' })
    })
    .get('/verify', async (c) => {
      const { head } = query(verifyQuery, c.req.query())
      await deps.operations.settleRecords()
      return c.json(await deps.audit.verify(head === undefined ? undefined : headOf(head)), 200)
    })
}

function headOf(text: string): Head {
  const [seq, mac = ''] = text.split(':')
  return { seq: Number(seq), mac }
}

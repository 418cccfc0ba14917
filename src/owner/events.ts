import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import { z } from 'zod'
import type { EventMap, EventName } from '../events/events.js'
import { deferred } from '../lib/async.js'
import type { OwnerEnv } from './auth.js'
import type { OwnerDeps } from './deps.js'
import { query } from './query.js'

const NAMES = [
  'approval.changed',
  'operation.changed',
  'session.changed',
  'connection.changed',
] as const satisfies EventName[]

/** Between two signs of life, so that a dead reader shows (HTML, "server-sent events"). */
const ALIVE_MS = 15_000
/** Events that wait for a slow reader; one that falls further behind is cut off, and reads the lists again when it is back. */
const MAX_WAITING = 1000

const eventQuery = z.strictObject({ approvals: z.literal('1').optional() })

/**
 * `GET /events`: what happens, as server-sent events. With `approvals=1` the reader takes questions: while it is connected, calls
 * that need an approval wait instead of being refused (AP-01). The first event is `ready`.
 */
export function eventRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().get('/', (c) => {
    const { approvals } = query(eventQuery, c.req.query())
    return streamSSE(c, async (stream) => {
      const waiting: { event: string; data: string }[] = []
      let wake = deferred<void>()
      let open = true
      const push = (event: string, data: unknown) => {
        waiting.push({ event, data: JSON.stringify(data) })
        if (waiting.length > MAX_WAITING) close()
        wake.resolve()
      }
      const close = () => {
        open = false
        wake.resolve()
      }
      stream.onAbort(close)
      const ends = NAMES.map((name) => deps.events.on(name, (payload: EventMap[typeof name]) => push(name, payload)))
      if (approvals === '1') ends.push(deps.approvals.consumers.add())
      const alive = setInterval(() => push('alive', {}), ALIVE_MS)
      push('ready', { approvals: deps.approvals.waiting().length })
      try {
        while (open) {
          for (let next = waiting.shift(); next !== undefined && open; next = waiting.shift())
            await stream.writeSSE(next)
          if (!open) break
          wake = deferred<void>()
          if (waiting.length === 0) await wake.promise
        }
      } finally {
        clearInterval(alive)
        for (const end of ends) end()
      }
    })
  })
}

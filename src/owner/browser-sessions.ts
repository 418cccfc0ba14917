import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../lib/clock.js'
import { type Deadline, deadlineIn, hasPassed } from '../lib/deadline.js'
import { sha256 } from '../lib/json.js'

const IDLE_MS = 12 * 3_600_000
const MAX_SESSIONS = 32

/** One signed-in browser. */
export interface BrowserSession {
  id: string
  /** Aborted when the session ends; streams that it opened must end with it. */
  signal: AbortSignal
}

export interface BrowserSessions {
  /** The cookie's value and the page's header secret, 256 random bits each. With 32 sessions the longest idle one ends. */
  create(): { cookie: string; pageSecret: string }
  /** The session of this cookie and this secret together, used just now; undefined for either alone. */
  find(cookie: string, pageSecret: string): BrowserSession | undefined
  end(id: string): void
  /** Ends all; answers how many there were. */
  endAll(): number
  /** Ends those that were idle for 12 hours; for the host's regular housekeeping, so that their streams end too. */
  sweep(): void
}

interface Row {
  pageHash: Buffer
  deadline: Deadline
  ended: AbortController
}

/**
 * In memory only and hashed: whoever takes Kiki's port after the host has stopped can be sent the cookie and can read
 * the page's storage, and both are worthless by then (GU-62).
 */
export function createBrowserSessions({ clock }: { clock: Clock }): BrowserSessions {
  // In order of last use.
  const rows = new Map<string, Row>()

  function end(id: string): void {
    rows.get(id)?.ended.abort()
    rows.delete(id)
  }
  function sweep(): void {
    for (const [id, row] of rows) if (hasPassed(clock, row.deadline)) end(id)
  }

  return {
    create() {
      sweep()
      const oldest = rows.keys().next()
      if (rows.size >= MAX_SESSIONS && !oldest.done) end(oldest.value)
      const cookie = randomBytes(32).toString('base64url')
      const pageSecret = randomBytes(32).toString('base64url')
      rows.set(sha256(cookie), {
        pageHash: Buffer.from(sha256(pageSecret), 'hex'),
        deadline: deadlineIn(clock, IDLE_MS),
        ended: new AbortController(),
      })
      return { cookie, pageSecret }
    },
    find(cookie, pageSecret) {
      const id = sha256(cookie)
      const row = rows.get(id)
      if (row === undefined || !timingSafeEqual(row.pageHash, Buffer.from(sha256(pageSecret), 'hex'))) return undefined
      if (hasPassed(clock, row.deadline)) {
        end(id)
        return undefined
      }
      rows.delete(id)
      rows.set(id, { ...row, deadline: deadlineIn(clock, IDLE_MS) })
      return { id, signal: row.ended.signal }
    },
    end,
    endAll() {
      const count = rows.size
      for (const id of [...rows.keys()]) end(id)
      return count
    },
    sweep,
  }
}

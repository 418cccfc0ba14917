import { randomBytes } from 'node:crypto'
import type { Clock } from '../lib/clock.js'
import { type Deadline, deadlineIn, hasPassed } from '../lib/deadline.js'
import { KikiError } from '../lib/errors.js'
import { sha256 } from '../lib/json.js'

const CODE_LIFE_MS = 2 * 60_000
const MAX_CODES = 20
const MAX_FAILURES = 10
const FAILURE_WINDOW_MS = 60_000

export interface LoginCodes {
  /** A new code of 192 random bits, good once, for 2 minutes. With 20 unused ones the oldest ends. */
  create(): { code: string; expiresAt: Date }
  /**
   * Uses the code up; false for an unknown, used or expired one.
   * @throws KikiError `rate_limited` (nothing is looked up) after 10 failures within a minute.
   */
  redeem(code: string): boolean
  /** Ends all unused codes. */
  clear(): void
}

/** Login codes of the settings page, in memory, hashed (GU-62). */
export function createLoginCodes({ clock }: { clock: Clock }): LoginCodes {
  const codes = new Map<string, Deadline>()
  let failures: number[] = []

  return {
    create() {
      for (const [hash, deadline] of codes) if (hasPassed(clock, deadline)) codes.delete(hash)
      const oldest = codes.keys().next()
      if (codes.size >= MAX_CODES && !oldest.done) codes.delete(oldest.value)
      const code = randomBytes(24).toString('base64url')
      const deadline = deadlineIn(clock, CODE_LIFE_MS)
      codes.set(sha256(code), deadline)
      return { code, expiresAt: new Date(deadline.wall) }
    },
    redeem(code) {
      const now = clock.monotonic()
      failures = failures.filter((at) => now - at < FAILURE_WINDOW_MS)
      if (failures.length >= MAX_FAILURES) throw tooMany((FAILURE_WINDOW_MS - (now - (failures[0] ?? now))) / 1000)
      const hash = sha256(code)
      const deadline = codes.get(hash)
      codes.delete(hash)
      const good = deadline !== undefined && !hasPassed(clock, deadline)
      if (!good) failures.push(now)
      return good
    },
    clear: () => codes.clear(),
  }
}

function tooMany(seconds: number): KikiError {
  const retryAfter = Math.max(1, Math.ceil(seconds))
  return new KikiError('rate_limited', 'Too many failed sign-ins.', {
    hint: `Wait ${retryAfter} s, then run \`kiki open\` again.`,
    data: { retry_after_s: retryAfter },
  })
}

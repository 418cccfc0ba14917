import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'

/** Calls a minute of each connection and session (GR-02, GR-06). */
export function createRateLimit(clock: Clock) {
  const windows = new Map<string, { startedAt: number; calls: number }>()
  return {
    /** Counts a call of a connection or session. @throws KikiError `rate_limited` beyond `perMinute`, naming the setting. */
    count(key: string, perMinute: number | null, setting: string): void {
      if (perMinute === null) return
      const now = clock.monotonic()
      const window = windows.get(key)
      if (window === undefined || now - window.startedAt >= 60_000) {
        windows.set(key, { startedAt: now, calls: 1 })
        return
      }
      window.calls++
      if (window.calls <= perMinute) return
      const seconds = Math.ceil((60_000 - (now - window.startedAt)) / 1000)
      throw new KikiError('rate_limited', `No more than ${perMinute} calls a minute may be made here (${setting}).`, {
        hint: `Try again in ${seconds} s.`,
        data: { setting, retry_after_s: seconds },
      })
    },
  }
}

export type RateLimit = ReturnType<typeof createRateLimit>

import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'

/** Calls a minute of each connection (GR-02). */
export function createRateLimit(clock: Clock) {
  const windows = new Map<string, { startedAt: number; calls: number }>()
  return {
    /** Counts a call. @throws KikiError `rate_limited` beyond `perMinute`. */
    count(connectionId: string, perMinute: number | null): void {
      if (perMinute === null) return
      const now = clock.monotonic()
      const window = windows.get(connectionId)
      if (window === undefined || now - window.startedAt >= 60_000) {
        windows.set(connectionId, { startedAt: now, calls: 1 })
        return
      }
      window.calls++
      if (window.calls <= perMinute) return
      const seconds = Math.ceil((60_000 - (now - window.startedAt)) / 1000)
      throw new KikiError('rate_limited', `This connection may make ${perMinute} calls a minute (connection.rate).`, {
        hint: `Try again in ${seconds} s.`,
        data: { setting: 'connection.rate', retry_after_s: seconds },
      })
    },
  }
}

export type RateLimit = ReturnType<typeof createRateLimit>

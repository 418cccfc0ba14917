import type { Clock } from '../lib/clock.js'

/** Entries of refused calls that one connection can cause in a minute: the log is never pruned, and refusals cost a client nothing. */
const MAX_A_MINUTE = 120
const WINDOW_MS = 60_000

/** Counts refusals of each connection. */
export interface RefusalLimit {
  /** Undefined where this one is only counted; else how many were not written since the last that was. */
  take(connectionId: string): number | undefined
}

export function createRefusalLimit(clock: Pick<Clock, 'monotonic'>): RefusalLimit {
  const windows = new Map<string, { startedAt: number; written: number; left: number }>()
  return {
    take(connectionId) {
      const now = clock.monotonic()
      const window = windows.get(connectionId)
      if (window === undefined || now - window.startedAt >= WINDOW_MS) {
        windows.set(connectionId, { startedAt: now, written: 1, left: 0 })
        return window?.left ?? 0
      }
      if (window.written >= MAX_A_MINUTE) {
        window.left++
        return undefined
      }
      window.written++
      return 0
    },
  }
}

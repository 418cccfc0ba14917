import type { Clock } from '../lib/clock.js'

/** Passes when either clock says so: a sleeping machine stops one of them, a wrong wall clock the other (GU-44). */
export interface Deadline {
  monotonic: number
  wall: number
}

export function deadlineIn(clock: Clock, ms: number): Deadline {
  return { monotonic: clock.monotonic() + ms, wall: clock.now() + ms }
}

export function hasPassed(clock: Clock, deadline: Deadline): boolean {
  return clock.monotonic() >= deadline.monotonic || clock.now() >= deadline.wall
}

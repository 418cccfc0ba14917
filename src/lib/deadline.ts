import type { Clock } from './clock.js'

/** Passes when either clock says so: a sleeping machine stops one of them, a wrong wall clock the other (GU-44). */
export interface Deadline {
  monotonic: number
  wall: number
}

/** @param ms from now. */
export function deadlineIn(clock: Clock, ms: number): Deadline {
  return { monotonic: clock.monotonic() + ms, wall: clock.now() + ms }
}

/** @param wall a time that was saved, in milliseconds since 1970. */
export function deadlineAt(clock: Clock, wall: number): Deadline {
  return deadlineIn(clock, wall - clock.now())
}

export function hasPassed(clock: Clock, deadline: Deadline): boolean {
  return clock.monotonic() >= deadline.monotonic || clock.now() >= deadline.wall
}

/** Deadlines that are saved as wall-clock times, with what the monotonic clock said when this process first saw them. */
export interface SavedDeadlines {
  /** Notes a deadline as soon as it is known: from here on no step of the wall clock can put it off (GU-44). */
  see(id: string, wall: number): void
  hasPassed(id: string, wall: number): boolean
  /** Forgets all others. */
  keep(ids: ReadonlySet<string>): void
}

export function createSavedDeadlines(clock: Clock): SavedDeadlines {
  const seen = new Map<string, Deadline>()
  const of = (id: string, wall: number): Deadline => {
    const known = seen.get(id)
    if (known?.wall === wall) return known
    const deadline = { monotonic: deadlineAt(clock, wall).monotonic, wall }
    seen.set(id, deadline)
    return deadline
  }
  return {
    see: (id, wall) => void of(id, wall),
    hasPassed: (id, wall) => hasPassed(clock, of(id, wall)),
    keep(ids) {
      for (const id of seen.keys()) if (!ids.has(id)) seen.delete(id)
    },
  }
}

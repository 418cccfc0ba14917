import { performance } from 'node:perf_hooks'

/** The only thing besides the model that tests replace. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970; may step either way. */
  now(): number
  /** Milliseconds on a clock that never steps; for in-process deadlines (GU-44). */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

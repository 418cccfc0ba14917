import { setImmediate } from 'node:timers/promises'
import { KikiError } from './errors.js'

/** Work that can be done in pieces: each `yield` is a place where it may pause. It must not hold on to what others change. */
export type Sliced<T> = Generator<undefined, T, undefined>

/** Time, in milliseconds, that one piece of work may keep everything else waiting. */
const SLICE_MS = 10

/** Does all of the work at once. */
export function runWhole<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Works for at most `ms`; the result if that was enough. The rest can be done later, from where it stands. */
export function runFor<T>(work: Sliced<T>, ms: number): { value: T } | undefined {
  const end = performance.now() + ms
  do {
    const step = work.next()
    if (step.done) return { value: step.value }
  } while (performance.now() < end)
  return undefined
}

/**
 * Does the work in slices of about 10 ms, with a turn of the event loop for everything else after each.
 * @throws what the work throws; KikiError `cancelled` at an abort, or its reason where that is one: then the work's `finally` has run.
 */
export async function runInSlices<T>(work: Sliced<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    const done = signal.aborted ? { value: endWith(work, signal.reason) } : runFor(work, SLICE_MS)
    if (done !== undefined) return done.value
    await setImmediate()
  }
}

function endWith<T>(work: Sliced<T>, reason: unknown): T {
  const error =
    reason instanceof KikiError
      ? reason
      : new KikiError('cancelled', 'The operation was cancelled before anything was changed.', {
          hint: 'Start it again if it is still wanted.',
          cause: reason,
        })
  work.throw(error)
  throw error
}

/** For loops that await anyway: lets everything else have a turn once they have worked for 10 ms. */
export function createPace(): () => Promise<void> {
  let end = performance.now() + SLICE_MS
  return async () => {
    if (performance.now() < end) return
    await setImmediate()
    end = performance.now() + SLICE_MS
  }
}

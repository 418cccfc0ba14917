export interface Deferred<T> {
  promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** Longest time that one timer can hold (2^31 - 1 ms); a longer one would fire at once (GU-44). */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Calls `fire` once when `ms` have passed on a clock that never steps, however many they are: a timer that is too long for
 * Node is set again for the rest (GU-44).
 * @returns what ends it before.
 */
export function startTimer(ms: number, fire: () => void): () => void {
  let left = ms
  let timer: NodeJS.Timeout
  const arm = () => {
    const piece = Math.min(left, MAX_TIMER_MS)
    left -= piece
    timer = setTimeout(left > 0 ? arm : fire, piece)
  }
  arm()
  return () => clearTimeout(timer)
}

/**
 * Resolves true when `promise` settled within `ms`, false when the time ran out first or the signal was aborted. Never
 * rejects. Where there is nothing to wait for, it tells whether the promise has settled already.
 */
export async function settledWithin(promise: Promise<unknown>, ms: number, signal?: AbortSignal): Promise<boolean> {
  const settled = promise.then(yes, yes)
  if (ms <= 0 || signal?.aborted) return Promise.race([settled, Promise.resolve().then(no)])
  let end: () => void = () => {}
  const over = new Promise<boolean>((resolve) => {
    const giveUp = () => resolve(false)
    const stop = startTimer(ms, giveUp)
    signal?.addEventListener('abort', giveUp, { once: true })
    end = () => {
      stop()
      signal?.removeEventListener('abort', giveUp)
    }
  })
  try {
    return await Promise.race([settled, over])
  } finally {
    end()
  }
}

const yes = () => true
const no = () => false

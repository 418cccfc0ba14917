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

/** Resolves true when `promise` settled within `ms`, false when the time ran out first. Never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number, signal?: AbortSignal): Promise<boolean> {
  if (ms <= 0) {
    return Promise.race([promise.then(yes, yes), Promise.resolve().then(no)])
  }
  let timer: NodeJS.Timeout | undefined
  let onAbort: (() => void) | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.min(ms, MAX_TIMER_MS))
    onAbort = () => resolve(false)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) resolve(false)
  })
  try {
    return await Promise.race([promise.then(yes, yes), timeout])
  } finally {
    clearTimeout(timer)
    if (onAbort) signal?.removeEventListener('abort', onAbort)
  }
}

const yes = () => true
const no = () => false

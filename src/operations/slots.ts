/** How many calls of one connection run at once (GR-02: concurrency cap). Waiting calls go in the order they came. */
export function createSlots() {
  const counts = new Map<string, number>()
  const queues = new Map<string, (() => void)[]>()

  function release(key: string): void {
    const next = queues.get(key)?.shift()
    if (next !== undefined) {
      next()
      return
    }
    const left = (counts.get(key) ?? 1) - 1
    if (left === 0) counts.delete(key)
    else counts.set(key, left)
  }

  function releaser(key: string): () => void {
    let released = false
    return () => {
      if (!released) release(key)
      released = true
    }
  }

  function tryTake(key: string, cap: number | null): (() => void) | undefined {
    if (cap !== null && (counts.get(key) ?? 0) >= cap) return undefined
    counts.set(key, (counts.get(key) ?? 0) + 1)
    return releaser(key)
  }

  return {
    /** The release function if a slot is free now. */
    tryTake,
    /** Resolves with the release function; without a slot when aborted, so that a cancelled call can end. */
    async take(key: string, cap: number | null, signal: AbortSignal): Promise<() => void> {
      const now = tryTake(key, cap)
      if (now !== undefined) return now
      if (signal.aborted) return () => {}
      const got = await new Promise<boolean>((resolve) => {
        const queue = queues.get(key) ?? []
        queues.set(key, queue)
        const turn = () => {
          signal.removeEventListener('abort', giveUp)
          resolve(true)
        }
        const giveUp = () => {
          queue.splice(queue.indexOf(turn), 1)
          resolve(false)
        }
        queue.push(turn)
        signal.addEventListener('abort', giveUp, { once: true })
      })
      return got ? releaser(key) : () => {}
    },
  }
}

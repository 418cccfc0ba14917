/** Calls that are counted together, and how many of them may run at once; null is no limit. */
export interface Lane {
  key: string
  cap: number | null
}

interface Waiter {
  lanes: readonly Lane[]
  turn(): void
}

/**
 * How many calls of one connection, and of one session of it, run at once (GR-02, GR-06). A call runs when every lane of
 * its own has room; waiting calls go in the order they came.
 */
export function createSlots() {
  const counts = new Map<string, number>()
  const waiting = new Set<Waiter>()

  const hasRoom = (lanes: readonly Lane[]) =>
    lanes.every(({ key, cap }) => cap === null || (counts.get(key) ?? 0) < cap)

  function enter(lanes: readonly Lane[]): () => void {
    for (const { key } of lanes) counts.set(key, (counts.get(key) ?? 0) + 1)
    let inside = true
    return () => {
      if (!inside) return
      inside = false
      leave(lanes)
    }
  }

  function leave(lanes: readonly Lane[]): void {
    for (const { key } of lanes) {
      const left = (counts.get(key) ?? 1) - 1
      if (left === 0) counts.delete(key)
      else counts.set(key, left)
    }
    for (const waiter of waiting) if (hasRoom(waiter.lanes)) waiter.turn()
  }

  function tryTake(lanes: readonly Lane[]): (() => void) | undefined {
    return hasRoom(lanes) ? enter(lanes) : undefined
  }

  return {
    /** The release function if there is room now. */
    tryTake,
    /** Resolves with the release function; without a slot when aborted, so that a cancelled call can end. */
    async take(lanes: readonly Lane[], signal: AbortSignal): Promise<() => void> {
      const now = tryTake(lanes)
      if (now !== undefined) return now
      if (signal.aborted) return () => {}
      return new Promise((resolve) => {
        const waiter: Waiter = {
          lanes,
          turn() {
            waiting.delete(waiter)
            signal.removeEventListener('abort', giveUp)
            resolve(enter(lanes))
          },
        }
        const giveUp = () => {
          waiting.delete(waiter)
          resolve(() => {})
        }
        waiting.add(waiter)
        signal.addEventListener('abort', giveUp, { once: true })
      })
    },
  }
}

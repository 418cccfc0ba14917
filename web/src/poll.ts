export interface Poll {
  /** Runs the next turn now, or right after the one that is running. */
  wake(): void
  stop(): void
}

/**
 * Runs `turn` again and again, one at a time, while the page is looked at.
 * @param turn answers the milliseconds until the next one, or undefined to wait for `wake`. Must not throw.
 */
export function createPoll(turn: () => Promise<number | undefined>): Poll {
  let timer: ReturnType<typeof setTimeout> | undefined
  let running = false
  let again = false

  async function run(): Promise<void> {
    if (document.visibilityState !== 'visible') return
    running = true
    const ms = await turn()
    running = false
    if (again) next(0)
    else if (ms !== undefined) next(ms)
    again = false
  }
  function next(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => void run(), ms)
  }
  function wake(): void {
    if (running) again = true
    else next(0)
  }

  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') wake()
  })
  window.addEventListener('online', wake)
  return { wake, stop: () => clearTimeout(timer) }
}

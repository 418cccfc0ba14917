/** Who shows questions to the owner right now: open settings pages, `kiki approvals watch`, other subscribers (AP-01). */
export interface Consumers {
  /** @returns the function that takes it away again. */
  add(): () => void
  count(): number
}

export function createConsumers(): Consumers {
  let count = 0
  return {
    add() {
      count++
      let there = true
      return () => {
        if (there) count--
        there = false
      }
    },
    count: () => count,
  }
}

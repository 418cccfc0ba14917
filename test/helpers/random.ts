/** mulberry32: small, and the same everywhere. @returns numbers from 0 to below 1. */
export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Choices that the same seed repeats. */
export interface Random {
  /** A whole number from 0 to below `end`. */
  below(end: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

export function createRandom(seed: number): Random {
  const next = generator(seed)
  const below = (end: number) => Math.floor(next() * end)
  return {
    below,
    chance: (probability) => next() < probability,
    pick: <T>(from: readonly T[]) => from[below(from.length)] as T,
  }
}

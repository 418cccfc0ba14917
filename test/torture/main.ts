/** What scripts/torture.mjs gives to each part, from its command line. */
export interface TortureOptions {
  kills: number
  worlds: number
  /** The part ends by itself after so long, with the figures that it has. */
  minutes: number
  seed: number
  calls: number
  cycles: number
  rows: number
  inputs: number
  say(text: string): void
}

export interface TortureResult {
  /** What was measured, and the figure. */
  figures: [string, string | number][]
  /** Whatever was not as promised, in words. */
  faults: string[]
}

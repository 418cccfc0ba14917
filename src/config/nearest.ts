/** The candidate closest to `word`, or undefined where none is near enough to be a likely slip of the pen. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const candidate of candidates) {
    const distance = editDistance(plain(word), plain(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** `toolTimeoutMs`, `tool-timeout-ms` and `tool_timeout_ms` are one word to a person. */
function plain(word: string): string {
  return word.slice(0, 200).toLowerCase().replaceAll(/[-_]/g, '')
}

/** Damerau-Levenshtein distance with adjacent swaps (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const best = Math.min(change, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(swapped ? Math.min(best, (before[j - 2] ?? 0) + 1) : best)
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? 0
}

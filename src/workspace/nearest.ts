import { cutText } from './encoding.js'

/** Characters of the file that are searched for something near, so that a failed edit of a huge file stays quick. */
const SEARCHED_CHARS = 1024 * 1024
/** Characters of one line that are compared. */
const LINE_CHARS = 400
/** Places of one line (say `}`) in the wanted text that may vote. */
const SAME_LINES = 20
const SHOWN_LINES = 12
const SHOWN_LINE_CHARS = 160
/** Below this likeness a region is no help. */
const LEAST_LIKENESS = 0.4

export interface Nearest {
  /** 1-based. */
  firstLine: number
  lastLine: number
  /** 0 to 1; 1 where only white space differs. */
  likeness: number
  /** What sets it apart, where one word can say it. */
  difference?: string
  /** The region with its line numbers, cut to a few lines. */
  shown: string
}

/** The region of a text that is most like `wanted`, as a hint only: nothing is ever written by likeness (FI-07, FI-08). */
export function nearestRegion(content: string, wanted: string): Nearest | undefined {
  const lines = content.slice(0, SEARCHED_CHARS).split(/\r?\n/)
  const sought = wanted.replace(/\r?\n$/, '').split(/\r?\n/)
  const first = byEqualLines(lines, sought) ?? byLikeness(lines, sought)
  if (first === undefined) return undefined
  const begin = Math.max(0, first)
  const region = lines.slice(begin, first + sought.length)
  const found = region.join('\n')
  const target = sought.join('\n')
  const likeness = likenessOf(target, found, sought.length === 1)
  if (likeness < LEAST_LIKENESS) return undefined
  const difference = differenceOf(target, found)
  return {
    firstLine: begin + 1,
    lastLine: begin + region.length,
    likeness,
    ...(difference === undefined ? {} : { difference }),
    shown: show(region, begin + 1),
  }
}

/** Lets each line that is equal but for indentation vote for where the region begins. */
function byEqualLines(lines: readonly string[], sought: readonly string[]): number | undefined {
  const places = new Map<string, number[]>()
  for (const [index, line] of sought.entries()) {
    const key = line.trim()
    const known = places.get(key) ?? []
    if (key !== '' && known.length < SAME_LINES) places.set(key, [...known, index])
  }
  const votes = new Map<number, number>()
  let best: number | undefined
  for (const [index, line] of lines.entries()) {
    if (line.length > SEARCHED_CHARS / 4) continue
    for (const at of places.get(line.trim()) ?? []) {
      const count = (votes.get(index - at) ?? 0) + 1
      votes.set(index - at, count)
      if (best === undefined || count > (votes.get(best) ?? 0)) best = index - at
    }
  }
  return best
}

/** The place of the line that holds most of the letter pairs of the first line that says something. */
function byLikeness(lines: readonly string[], sought: readonly string[]): number | undefined {
  const at = Math.max(
    0,
    sought.findIndex((line) => line.trim() !== ''),
  )
  const pairs = pairsOf((sought[at] ?? '').trim())
  if (pairs.size === 0) return undefined
  let best: { index: number; score: number } | undefined
  for (const [index, line] of lines.entries()) {
    const trimmed = line.trim().slice(0, LINE_CHARS)
    const score = shared(pairs, trimmed) / pairs.size - Math.min(0.2, Math.abs(trimmed.length - pairs.size) / 2000)
    if (best === undefined || score > best.score) best = { index, score }
  }
  return best && best.index - at
}

function pairsOf(text: string): Set<number> {
  const pairs = new Set<number>()
  const end = Math.min(text.length, LINE_CHARS) - 1
  for (let i = 0; i < end; i++) pairs.add(text.charCodeAt(i) * 65536 + text.charCodeAt(i + 1))
  return pairs
}

function shared(pairs: ReadonlySet<number>, text: string): number {
  const seen = new Set<number>()
  for (let i = 0; i + 1 < text.length; i++) {
    const pair = text.charCodeAt(i) * 65536 + text.charCodeAt(i + 1)
    if (pairs.has(pair)) seen.add(pair)
  }
  return seen.size
}

/** Share of letter pairs in common; of a single line it is enough that the found line contains them. */
function likenessOf(wanted: string, found: string, contained: boolean): number {
  const flat = (text: string) => text.replace(/\s+/g, ' ').trim().normalize('NFC').slice(0, 4000)
  const [a, b] = [flat(wanted), flat(found)]
  if (a === b) return 1
  const pairs = longPairsOf(a)
  const others = longPairsOf(b)
  const common = [...pairs].filter((pair) => others.has(pair)).length
  const whole = contained ? pairs.size : (pairs.size + others.size) / 2
  return whole === 0 ? 0 : Math.min(0.99, common / whole)
}

function longPairsOf(text: string): Set<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)))
}

function differenceOf(wanted: string, found: string): string | undefined {
  if (found.includes(wanted)) return undefined
  if (/^\s*\d+\t/.test(wanted)) return 'it begins with a line number of Read, which is not part of the file'
  if (found.normalize('NFC').includes(wanted.normalize('NFC'))) {
    return 'letters are composed differently (Unicode normal forms)'
  }
  if (found.replace(/\s+/g, '') === wanted.replace(/\s+/g, ''))
    return 'only white space differs (indentation, tabs or spaces)'
  if (found.toLowerCase().includes(wanted.toLowerCase())) return 'only upper and lower case differ'
  return undefined
}

function show(region: readonly string[], first: number): string {
  const shown = region.slice(0, SHOWN_LINES).map((line, index) => {
    const text = line.length > SHOWN_LINE_CHARS ? `${cutText(line, SHOWN_LINE_CHARS)}…` : line
    return `${first + index}\t${text}`
  })
  if (region.length > SHOWN_LINES) shown.push(`[${region.length - SHOWN_LINES} more lines]`)
  return shown.join('\n')
}

import { KikiError } from '../lib/errors.js'
import type { Sliced } from '../lib/slices.js'
import { decode } from './encoding.js'
import { lineAt, type PatchedText } from './patch-lines.js'

/** Lines that one anchor may fit. */
const MAX_LINES = 1000
const STEPS = 4096

/**
 * Where the lines begin that a hunk's `@@` lines name, each behind the one before: equal but for white space around them, or
 * else beginning so.
 * @throws KikiError `not_found` where there is none, `conflict` where more than 1,000 fit.
 */
export function* anchoredStarts(
  text: PatchedText,
  anchors: readonly string[],
  cursor: { start: number },
): Sliced<number[]> {
  let starts: number[] | undefined
  for (const anchor of anchors) {
    const from: readonly number[] = starts ?? [cursor.start]
    const found = yield* linesLike(text, anchor, Math.min(...from))
    // Behind each of the places so far the next line that fits; the first anchor may be anywhere.
    const next = starts === undefined ? found : from.flatMap((start) => found.find((at) => at > start) ?? [])
    starts = [...new Set(next)]
    if (starts.length === 0) throw noLine(text, anchor)
  }
  return starts ?? []
}

function* linesLike(text: PatchedText, anchor: string, from: number): Sliced<number[]> {
  const equal: number[] = []
  const beginning: number[] = []
  let step = 0
  for (let at = from; at < text.bytes.length; ) {
    const line = lineAt(text, at)
    if (line.end - line.start < 4096) {
      const content = decode(text.bytes.subarray(line.start, line.end), text.encoding).trim()
      if (content === anchor) equal.push(at)
      else if (content.startsWith(anchor)) beginning.push(at)
    }
    if (equal.length > MAX_LINES || beginning.length > MAX_LINES) throw tooMany(text, anchor)
    if (++step % STEPS === 0) yield
    at = line.next
  }
  return equal.length > 0 ? equal : beginning
}

function noLine({ display }: PatchedText, anchor: string): KikiError {
  return new KikiError('not_found', `no line of ${display} reads "${anchor}"`, {
    hint: 'A @@ line must be a line of the file that stands before the change, or be left out.',
  })
}

function tooMany({ display }: PatchedText, anchor: string): KikiError {
  return new KikiError('conflict', `more than ${MAX_LINES} lines of ${display} read "${anchor}"`, {
    hint: 'Name a line that is there once, or add lines around the change.',
  })
}

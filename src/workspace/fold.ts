import type { Sliced } from '../lib/slices.js'

/** Text with differences folded away, and how to get back: what was found in it is cut from the original. */
export interface Folded {
  text: string
  /** First unit in the original of the folded unit at `at`. */
  startOf(at: number): number
  /** Unit in the original after the folded unit at `at`. */
  endOf(at: number): number
  /** Unit in the original after the white space that was folded away behind folded unit `at`. */
  endWithSpaceOf(at: number): number
}

/** Which differences a search overlooks (FI-08). */
export type Tolerance = 'line_endings' | 'white_space_and_quotes'

/** How text is held while it is folded: UTF-16 units, or the bytes of UTF-8 as Latin-1 characters. */
export type Units = 'utf-16' | 'utf-8-bytes' | 'unknown-bytes'

const QUOTES: Readonly<Record<string, string>> = {
  '\u2018': "'",
  '\u2019': "'",
  '\u201a': "'",
  '\u201b': "'",
  '\u201c': '"',
  '\u201d': '"',
  '\u201e': '"',
  '\u201f': '"',
}

/** The look-behind keeps a long run of spaces from being tried at each of its places. */
const TRAILING = '(?<![ \\t])[ \\t]+(?=\\r?\\n|$)'

/**
 * Folds line endings to LF and, with the greater tolerance, drops white space before line ends and makes typographic
 * quotes plain. Each folded character keeps its place in the original.
 */
export function* fold(text: string, tolerance: Tolerance, units: Units): Sliced<Folded> {
  const plain = tolerance === 'line_endings' ? new Map<string, string>() : quotesIn(units)
  const parts = tolerance === 'line_endings' ? ['\\r\\n'] : ['\\r\\n', TRAILING, ...plain.keys()]
  // Places where folded and original text go out of step: folded place, original place, original length of what stands there.
  const marks = { at: [0], from: [0], length: [1] }
  const pattern = new RegExp(parts.join('|'), 'g')
  let folded = ''
  let copied = 0
  for (let from = 0; from < text.length; ) {
    const to = pieceEnd(text, from)
    for (const found of text.slice(from, to).matchAll(pattern)) {
      const value = found[0]
      const start = from + found.index
      folded += text.slice(copied, start)
      copied = start + value.length
      const replacement = value === '\r\n' ? '\n' : plain.get(value)
      marks.at.push(folded.length)
      marks.from.push(replacement === undefined ? copied : start)
      marks.length.push(replacement === undefined ? 1 : value.length)
      folded += replacement ?? ''
    }
    from = to
    yield
  }
  folded += text.slice(copied)
  const startOf = (at: number) => {
    const mark = lastAtOrBefore(marks.at, at)
    const past = at - (marks.at[mark] ?? 0)
    return (marks.from[mark] ?? 0) + (past === 0 ? 0 : (marks.length[mark] ?? 1) + past - 1)
  }
  const endOf = (at: number) => {
    const mark = lastAtOrBefore(marks.at, at)
    return marks.at[mark] === at ? (marks.from[mark] ?? 0) + (marks.length[mark] ?? 1) : startOf(at) + 1
  }
  return {
    text: folded,
    startOf,
    endOf,
    endWithSpaceOf: (at) => (at + 1 < folded.length ? startOf(at + 1) : text.length),
  }
}

/** Units that are folded between two places where the work may pause. */
const PIECE_UNITS = 128 * 1024

/** Where a piece that begins at `from` can end so that nothing that is folded lies across: behind a line end or a visible ASCII character. */
function pieceEnd(text: string, from: number): number {
  for (let end = from + PIECE_UNITS; end < text.length; end++) {
    const last = text.charCodeAt(end - 1)
    if (last === 0x0a || (last > 0x20 && last < 0x7f)) return end
  }
  return text.length
}

function quotesIn(units: Units): Map<string, string> {
  // In an unknown encoding the same bytes may be other characters.
  if (units === 'unknown-bytes') return new Map()
  const spelled = (quote: string) => (units === 'utf-16' ? quote : Buffer.from(quote).toString('latin1'))
  return new Map(Object.entries(QUOTES).map(([quote, plain]) => [spelled(quote), plain]))
}

/** Place of the last value that is not greater; of equal ones the last. */
function lastAtOrBefore(values: readonly number[], wanted: number): number {
  let low = 0
  let high = values.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((values[middle] ?? 0) <= wanted) low = middle
    else high = middle
  }
  return low
}

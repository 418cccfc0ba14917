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
export function fold(text: string, tolerance: Tolerance, units: Units): Folded {
  const plain = tolerance === 'line_endings' ? new Map<string, string>() : quotesIn(units)
  const parts = tolerance === 'line_endings' ? ['\\r\\n'] : ['\\r\\n', TRAILING, ...plain.keys()]
  // Places where folded and original text go out of step: folded place, original place, original length of what stands there.
  const marks = { at: [0], from: [0], length: [1] }
  let folded = ''
  let copied = 0
  for (const found of text.matchAll(new RegExp(parts.join('|'), 'g'))) {
    const value = found[0]
    folded += text.slice(copied, found.index)
    copied = found.index + value.length
    const replacement = value === '\r\n' ? '\n' : plain.get(value)
    marks.at.push(folded.length)
    marks.from.push(replacement === undefined ? copied : found.index)
    marks.length.push(replacement === undefined ? 1 : value.length)
    folded += replacement ?? ''
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

import { unifiedDiff, unifiedDiffOfBytes } from './diff.js'
import { decode, detect, unitSize } from './encoding.js'
import { shownPath } from './list.js'

/** A short unified diff of text, '' for bytes that are not (FI-11). */
export function diffOf({
  before = Buffer.alloc(0),
  after,
  display,
  maxChars,
}: {
  before: Buffer | undefined
  after: Buffer
  display: string
  /** Default: 4,000. */
  maxChars?: number
}): string {
  const file = detect(before.length > 0 ? before : after, false)
  if (!file.text) return ''
  const options = { path: shownPath(display), ...(maxChars === undefined ? {} : { maxChars }) }
  if (unitSize(file.encoding) === 1) {
    return unifiedDiffOfBytes(before.subarray(file.bom), after.subarray(file.bom), options)
  }
  return unifiedDiff(
    decode(before.subarray(file.bom), file.encoding),
    decode(after.subarray(file.bom), file.encoding),
    options,
  )
}

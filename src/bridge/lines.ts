const NEWLINE = 10
/** What is kept of the beginning and of the end of a line that is too long: enough to find its id. */
const KEPT_BYTES = 4096

export interface LineSplitter {
  push(chunk: Buffer): void
}

/** Called once for every complete line. */
export interface LineHandler {
  /** A whole line with its newline, so that it can be passed on without a copy. */
  line(line: Buffer): void
  /** A line of more than `maxBytes`: only its first and last bytes are still known. */
  tooLong(head: Buffer, tail: Buffer): void
}

/** Splits a byte stream into lines. Holds at most `maxBytes` and one chunk; a longer line is dropped while it arrives. */
export function createLineSplitter(maxBytes: number, handler: LineHandler): LineSplitter {
  let parts: Buffer[] = []
  let size = 0
  let dropped: { head: Buffer; tail: Buffer } | undefined

  const take = (piece: Buffer): void => {
    if (dropped) {
      dropped.tail = lastBytes(dropped.tail, piece)
      return
    }
    parts.push(piece)
    size += piece.length
    if (size <= maxBytes) return
    const all = Buffer.concat(parts)
    dropped = { head: Buffer.from(all.subarray(0, KEPT_BYTES)), tail: Buffer.from(all.subarray(-KEPT_BYTES)) }
    parts = []
    size = 0
  }

  const finish = (): void => {
    const [only] = parts
    const whole = parts.length === 1 && only ? only : Buffer.concat(parts)
    const long = dropped
    parts = []
    size = 0
    dropped = undefined
    if (long) handler.tooLong(long.head, long.tail)
    else handler.line(whole)
  }

  return {
    push(chunk) {
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        take(chunk.subarray(start, end + 1))
        finish()
        start = end + 1
      }
      if (start < chunk.length) take(chunk.subarray(start))
    },
  }
}

function lastBytes(before: Buffer, piece: Buffer): Buffer {
  if (piece.length >= KEPT_BYTES) return Buffer.from(piece.subarray(-KEPT_BYTES))
  return Buffer.concat([before, piece]).subarray(-KEPT_BYTES)
}

export interface ByteSplitter {
  push(chunk: Buffer): void
  /** Gives out what stands after the last separator, if anything. */
  end(): void
}

/**
 * Cuts a byte stream at one separator byte, each byte looked at once whatever the chunks are.
 * A piece longer than `maxBytes` is not kept: `onTooLong` gets its first bytes instead (at most `maxBytes`).
 */
export function createSplitter(options: {
  separator: number
  maxBytes: number
  onPiece(piece: Buffer): void
  onTooLong(start: Buffer): void
}): ByteSplitter {
  let parts: Buffer[] = []
  let size = 0
  let tooLong = false

  const add = (part: Buffer): void => {
    if (part.length === 0 || tooLong) return
    parts.push(part)
    size += part.length
    if (size <= options.maxBytes) return
    tooLong = true
    // Only the start is of use; the rest of the piece must not stay in memory.
    parts = [Buffer.from(parts[0] as Buffer)]
  }
  const finish = (): void => {
    const piece = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
    const wasTooLong = tooLong
    parts = []
    size = 0
    tooLong = false
    if (wasTooLong) options.onTooLong(piece.subarray(0, options.maxBytes))
    else options.onPiece(piece)
  }

  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(options.separator); at >= 0; at = chunk.indexOf(options.separator, from)) {
        add(chunk.subarray(from, at))
        finish()
        from = at + 1
      }
      add(chunk.subarray(from))
    },
    end() {
      if (size > 0) finish()
    },
  }
}

import { safeByteCut, terminalText } from '../../lib/terminal-text.js'

/** A stretch of output that can be read alone. */
export interface Block {
  /** Offset of its first byte in all that was written. */
  byte: number
  size: number
  /** UTF-16 code units of its text. */
  chars: number
}

/** Bytes of a block, but for the last one. */
export const BLOCK_BYTES = 64 * 1024
/** Where nothing allows a cut for so long, one is made all the same. */
const MOST = 4 * BLOCK_BYTES

/** Cuts a stream of output into blocks as it comes, and counts the characters of its text. */
export function createBlocks(onBlock: (block: Block, bytes: Buffer) => void, from = 0) {
  let pending: Buffer[] = []
  let size = 0
  let byte = from

  function cut(bytes: Buffer): void {
    onBlock({ byte, size: bytes.length, chars: terminalText(bytes).length }, bytes)
    byte += bytes.length
  }

  return {
    push(chunk: Buffer): void {
      pending.push(chunk)
      size += chunk.length
      if (size < BLOCK_BYTES) return
      let all = pending.length === 1 ? chunk : Buffer.concat(pending)
      while (all.length >= BLOCK_BYTES) {
        const window = all.subarray(0, BLOCK_BYTES)
        const found = safeByteCut(window)
        if (found === 0 && all.length < MOST) break
        const at = found === 0 ? window.length : found
        cut(all.subarray(0, at))
        all = all.subarray(at)
      }
      pending = all.length > 0 ? [Buffer.from(all)] : []
      size = all.length
    },
    /** Makes the last block of what is left. */
    end(): void {
      if (size > 0) cut(Buffer.concat(pending))
      pending = []
      size = 0
    },
  }
}

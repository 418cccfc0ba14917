import { isUtf8 } from 'node:buffer'

/** A part of a matching line (or of several, in multiline mode) that is small enough to keep and show. */
export interface Window {
  bytes: Buffer
  /** Where the window begins within the matched lines, in bytes. */
  start: number
  /** Bytes of the matched lines before and after the window. */
  cutBefore: number
  cutAfter: number
}

/** Longest line that is shown whole, in bytes. */
const LINE_BYTES = 500
/** Bytes shown before the hit of a longer one. */
const LEAD_BYTES = 120
/** Bytes shown of a match over several lines. */
const BLOCK_BYTES = 4_000

/** Cuts the text of a match around its first hit, never within a UTF-8 character. */
export function cutWindow(lines: Buffer, hit: number): Window {
  const text = withoutLineEnd(lines)
  const limit = text.includes(0x0a) ? BLOCK_BYTES : LINE_BYTES
  if (text.length <= limit) return { bytes: Buffer.from(text), start: 0, cutBefore: 0, cutAfter: 0 }
  const start = boundary(text, Math.max(0, Math.min(hit - LEAD_BYTES, text.length - limit)))
  const end = boundary(text, Math.min(text.length, start + limit))
  // A copy: a slice would keep the whole long line in memory.
  return { bytes: Buffer.from(text.subarray(start, end)), start, cutBefore: start, cutAfter: text.length - end }
}

/** The window's lines as text, with markers where it was cut; bytes that are not UTF-8 are written `\xNN`. */
export function windowLines(window: Window): string[] {
  const before = window.cutBefore > 0 ? `[… ${window.cutBefore} bytes] ` : ''
  const after = window.cutAfter > 0 ? ` [${window.cutAfter} bytes …]` : ''
  const lines = escapeInvalid(window.bytes).split(/\r?\n/)
  return `${before}${lines.join('\n')}${after}`.split('\n')
}

function withoutLineEnd(lines: Buffer): Buffer {
  let end = lines.length
  if (lines[end - 1] === 0x0a) end -= 1
  if (lines[end - 1] === 0x0d) end -= 1
  return lines.subarray(0, end)
}

/** The nearest start of a character at or before `at`; bytes that are not UTF-8 are cut anywhere. */
function boundary(bytes: Buffer, at: number): number {
  for (let back = 0; back < 4; back++) {
    const byte = bytes[at - back]
    if (byte === undefined || (byte & 0xc0) !== 0x80) return at - back
  }
  return at
}

function escapeInvalid(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes[at] ?? 0)
    const piece = bytes.subarray(at, at + length)
    if (piece.length === length && isUtf8(piece)) {
      parts.push(piece.toString('utf8'))
      at += length
    } else {
      parts.push(`\\x${(bytes[at] ?? 0).toString(16).padStart(2, '0')}`)
      at += 1
    }
  }
  return parts.join('')
}

function characterLength(lead: number): number {
  if (lead < 0xc0) return 1
  if (lead < 0xe0) return 2
  return lead < 0xf0 ? 3 : 4
}

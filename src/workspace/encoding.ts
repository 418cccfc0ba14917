import { isUtf8 } from 'node:buffer'
import { sniffType } from './file-type.js'

/** `unknown-8bit`: text in some legacy encoding (Latin-1, Shift_JIS, …) that nothing in the file names. */
export type Encoding = 'utf-8' | 'utf-8-bom' | 'utf-16le' | 'utf-16be' | 'unknown-8bit'

/** `none`: no line end at all. A lone CR is part of its line. */
export type Eol = 'lf' | 'crlf' | 'mixed' | 'none'

export type Detected =
  | { text: true; encoding: Encoding /** Bytes of byte order mark. */; bom: 0 | 2 | 3 }
  | { text: false /** Media type, `application/octet-stream` where unknown. */; type: string }

/** Bytes of a file's beginning that decide whether it is text (FI-03). */
export const SNIFF_BYTES = 8192

/** A file that is no UTF-8 is still text while at most one byte in this many is an odd control character. */
const ODD_CONTROLS_ONE_IN = 50

/**
 * Tells text from binary by content, never by name (FI-03).
 * @param bytes the whole file, or its beginning; the whole lets `utf-8` mean that all of it is valid
 * @param whole false where the file goes on, so that a character cut at the end is no fault
 */
export function detect(bytes: Buffer, whole: boolean): Detected {
  const head = bytes.subarray(0, SNIFF_BYTES)
  if (startsWith(head, [0xef, 0xbb, 0xbf]) && !head.includes(0)) return { text: true, encoding: 'utf-8-bom', bom: 3 }
  if (startsWith(head, [0xff, 0xfe, 0, 0]) || startsWith(head, [0, 0, 0xfe, 0xff])) {
    return { text: false, type: 'text/plain; charset=utf-32' }
  }
  const wide = !hasNulUnit(head)
  if (wide && startsWith(head, [0xff, 0xfe])) return { text: true, encoding: 'utf-16le', bom: 2 }
  if (wide && startsWith(head, [0xfe, 0xff])) return { text: true, encoding: 'utf-16be', bom: 2 }
  const type = sniffType(head)
  if (type !== undefined || head.includes(0)) return { text: false, type: type ?? 'application/octet-stream' }
  const valid = isUtf8(whole ? bytes : bytes.subarray(0, wholeCharacters(bytes, 'utf-8')))
  if (valid) return { text: true, encoding: 'utf-8', bom: 0 }
  if (oddControls(head) * ODD_CONTROLS_ONE_IN > head.length) return { text: false, type: 'application/octet-stream' }
  return { text: true, encoding: 'unknown-8bit', bom: 0 }
}

/** Bytes of the smallest unit of the encoding: 2 for UTF-16, else 1. */
export function unitSize(encoding: Encoding): 1 | 2 {
  return encoding === 'utf-16le' || encoding === 'utf-16be' ? 2 : 1
}

/** Text of bytes without a byte order mark; what is invalid becomes U+FFFD. */
export function decode(bytes: Buffer, encoding: Encoding): string {
  if (encoding === 'utf-16le') return bytes.toString('utf16le') + (bytes.length % 2 === 1 ? '\ufffd' : '')
  if (encoding === 'utf-16be') {
    const even = bytes.length - (bytes.length % 2)
    return Buffer.from(bytes.subarray(0, even)).swap16().toString('utf16le') + (even < bytes.length ? '\ufffd' : '')
  }
  return bytes.toString('utf8')
}

/** Bytes of text, without a byte order mark. For `unknown-8bit` only ASCII text may be given; {@link isAscii} tells. */
export function encode(text: string, encoding: Encoding): Buffer {
  if (encoding === 'utf-16le') return Buffer.from(text, 'utf16le')
  if (encoding === 'utf-16be') return Buffer.from(text, 'utf16le').swap16()
  return Buffer.from(text, 'utf8')
}

export function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

/** At most `most` characters (UTF-16 units) of the text, never half of a surrogate pair. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const code = text.charCodeAt(most - 1)
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? most - 1 : most)
}

/** Whether a lone surrogate stands in the text: no encoding can hold it unchanged. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

/** How many leading bytes end at a whole character; a last character that is only cut short is left out (at most 3 bytes). */
export function wholeCharacters(bytes: Buffer, encoding: Encoding): number {
  if (unitSize(encoding) === 2) return bytes.length - (bytes.length % 2)
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes.length
    if (byte < 0xc0) continue
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return needs > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** Counts of line ends; `cr` says that the last byte or unit was a CR, which the next piece may complete. */
export interface LineEnds {
  lf: number
  crlf: number
  cr: boolean
}

/**
 * Adds the line ends of the next piece of a file, which begins at a whole unit, to `ends`. The native search costs a
 * fifth of a loop over bytes.
 */
export function countLineEnds(bytes: Buffer, encoding: Encoding, ends: LineEnds): void {
  const step = unitSize(encoding)
  const length = bytes.length - (bytes.length % step)
  if (length === 0) return
  const isCr = (at: number) =>
    at < 0 ? ends.cr : bytes[at + LOW[encoding]] === 13 && (step === 1 || isLowUnit(bytes, at))
  let lf = 0
  let crlf = 0
  for (let at = findLineEnd(bytes, 0, encoding); at >= 0; at = findLineEnd(bytes, at + step, encoding)) {
    if (isCr(at - step)) crlf++
    else lf++
  }
  ends.cr = isCr(length - step)
  ends.lf += lf
  ends.crlf += crlf
}

/** Where the low byte of a unit stands in it. */
const LOW: Readonly<Record<Encoding, 0 | 1>> = {
  'utf-8': 0,
  'utf-8-bom': 0,
  'utf-16le': 0,
  'utf-16be': 1,
  'unknown-8bit': 0,
}

/** Whether one of the two bytes at `at` is 0: with the other known, that the unit is below 256. */
function isLowUnit(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0 || bytes[at + 1] === 0
}

export function eolOf(ends: { lf: number; crlf: number }): Eol {
  if (ends.lf > 0) return ends.crlf > 0 ? 'mixed' : 'lf'
  return ends.crlf > 0 ? 'crlf' : 'none'
}

const LF_BE = Buffer.from([0, 10])

/** Where the next LF stands at or after `from`, or -1. `bytes` begins at a whole unit. */
export function findLineEnd(bytes: Buffer, from: number, encoding: Encoding): number {
  if (encoding === 'utf-16le') return bytes.indexOf('\n', from, 'utf16le')
  if (encoding === 'utf-16be') return bytes.indexOf(LF_BE, from, 'utf16le')
  return bytes.indexOf(10, from)
}

function startsWith(bytes: Buffer, prefix: readonly number[]): boolean {
  return bytes.length >= prefix.length && prefix.every((byte, at) => bytes[at] === byte)
}

/** Whether a 16-bit NUL stands in the bytes: what begins like UTF-16 is then no text. */
function hasNulUnit(bytes: Buffer): boolean {
  return bytes.indexOf(Buffer.alloc(2), 0, 'utf16le') >= 0
}

function oddControls(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) {
    const usual = byte >= 0x20 ? byte !== 0x7f : (byte >= 8 && byte <= 13) || byte === 0x1a || byte === 0x1b
    if (!usual) count++
  }
  return count
}

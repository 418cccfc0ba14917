/** Longest sequence that is still taken for one, in characters. */
const MAX_SEQUENCE = 4096
// Escape sequences (ECMA-48): CSI; OSC up to BEL or ST; DCS, SOS, PM and APC up to ST; all shorter ones.
const SEQUENCE = new RegExp(
  [
    '\\x1b\\[[0-?]*[ -/]*[@-~]',
    `\\x1b\\][^\\x07\\x1b]{0,${MAX_SEQUENCE}}(?:\\x07|\\x1b\\\\)`,
    `\\x1b[PX^_][^\\x1b]{0,${MAX_SEQUENCE}}\\x1b\\\\`,
    // Without those that begin a longer one.
    '\\x1b[ -/]*[0-OQ-WYZ\\\\`-~]',
    '\\x9b[0-?]*[ -/]*[@-~]',
  ].join('|'),
  'g',
)
/** All that a text of lines and tabs does not need. */
const CONTROL = /(?![\t\n\r])\p{Cc}/u
const CONTROLS = new RegExp(CONTROL.source, 'gu')
/** Bell, backspace, DEL and all above move or ring: they say nothing in a text. */
const isSilent = (code: number): boolean => code === 7 || code === 8 || code >= 0x7f
const PICTURES = 0x2400

/**
 * The text of a terminal program's output: its lines end by LF; escape sequences and what only moves the cursor removed, any other control character
 * shown as its picture (`␀`), so that nothing disappears unseen (SH-05). Bytes that are no UTF-8 become U+FFFD.
 */
export function terminalText(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (!CONTROL.test(text) && !text.includes('\r\n')) return text
  return text
    .replaceAll('\r\n', '\n')
    .replace(SEQUENCE, '')
    .replace(CONTROLS, (one) => (isSilent(one.charCodeAt(0)) ? '' : String.fromCharCode(PICTURES + one.charCodeAt(0))))
}

/** Bytes that are looked at for a place to cut. */
const LOOK = 4096
const LONGEST_SEQUENCE_SEEN = 64

/**
 * Where bytes can be cut so that both sides can be read alone: after a line's end near the end, else between characters and
 * outside of an escape sequence. 0 where there is no such place.
 */
export function safeByteCut(bytes: Buffer): number {
  const line = bytes.lastIndexOf(0x0a)
  if (line >= 0 && line >= bytes.length - LOOK) return line + 1
  const end = characterCut(bytes)
  const start = bytes.subarray(0, end).lastIndexOf(0x1b)
  if (start < 0 || start < end - LONGEST_SEQUENCE_SEEN) return end
  const rest = bytes.toString('latin1', start, end)
  SEQUENCE.lastIndex = 0
  return SEQUENCE.exec(rest)?.index === 0 ? end : start
}

/** The last place that does not split a character of UTF-8. */
function characterCut(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes.length
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return back >= length ? bytes.length : bytes.length - back
    }
  }
  return bytes.length
}

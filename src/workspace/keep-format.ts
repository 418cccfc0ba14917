/** How text stands in a file: what a whole replacement keeps (FI-06). */
export interface TextFormat {
  bom: 'none' | 'utf-8' | 'utf-16le' | 'utf-16be'
  /** `mixed` where both or a lone CR occur, `none` where there is no line end or the bytes are not text. */
  eol: 'lf' | 'crlf' | 'mixed' | 'none'
}

const MARK = '\ufeff'

export function formatOf(bytes: Buffer): TextFormat {
  const bom = bomOf(bytes)
  return { bom, eol: bom === 'utf-16le' || bom === 'utf-16be' ? eolOf(decode16(bytes, bom)) : eolOf(bytes) }
}

/**
 * The bytes of `content` in the format of the file that it replaces: its byte order mark and encoding, and its line ends
 * where they are all alike. The last line end is neither added nor removed.
 */
export function encodeLike(content: string, format: TextFormat): Buffer {
  const body = format.bom !== 'none' && content.startsWith(MARK) ? content.slice(1) : content
  const text = withEol(body, format.eol)
  if (format.bom === 'none') return Buffer.from(text)
  if (format.bom === 'utf-8') return Buffer.from(MARK + text)
  const little = Buffer.from(MARK + text, 'utf16le')
  return format.bom === 'utf-16le' ? little : little.swap16()
}

function bomOf(bytes: Buffer): TextFormat['bom'] {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes.length % 2 !== 0) return 'none'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'none'
}

function decode16(bytes: Buffer, bom: 'utf-16le' | 'utf-16be'): Buffer {
  const little = bom === 'utf-16le' ? bytes : Buffer.from(bytes).swap16()
  return Buffer.from(little.toString('utf16le'))
}

function eolOf(bytes: Buffer): TextFormat['eol'] {
  if (bytes.includes(0)) return 'none'
  let crlf = 0
  let lf = 0
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (bytes[at - 1] === 0x0d) crlf += 1
    else lf += 1
    if (crlf > 0 && lf > 0) return 'mixed'
  }
  if (crlf === 0 && lf === 0) return 'none'
  return crlf > 0 ? 'crlf' : 'lf'
}

function withEol(text: string, eol: TextFormat['eol']): string {
  if (eol === 'crlf') return text.replace(/\r?\n/g, '\r\n')
  return eol === 'lf' ? text.replaceAll('\r\n', '\n') : text
}

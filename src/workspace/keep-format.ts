import { countLineEnds, detect, encode, eolOf } from './encoding.js'

const MARK = '\ufeff'

/**
 * The bytes of `content` in the format of the file that it replaces (FI-06): its byte order mark and encoding, and its line
 * ends where they are all alike. The last line end is neither added nor removed. Of a file that is no text, or in a legacy
 * encoding, nothing is kept.
 */
export function encodeLike(content: string, replaced: Buffer): Buffer {
  const file = detect(replaced, true)
  if (!file.text || file.encoding === 'unknown-8bit') return Buffer.from(content)
  const ends = { lf: 0, crlf: 0, cr: false }
  countLineEnds(replaced.subarray(file.bom), file.encoding, ends)
  const text = withEol(file.bom > 0 && content.startsWith(MARK) ? content.slice(1) : content, eolOf(ends))
  return encode(file.bom > 0 ? MARK + text : text, file.encoding)
}

function withEol(text: string, eol: 'lf' | 'crlf' | 'mixed' | 'none'): string {
  if (eol === 'crlf') return text.replace(/\r?\n/g, '\r\n')
  return eol === 'lf' ? text.replaceAll('\r\n', '\n') : text
}

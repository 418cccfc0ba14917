/** First bytes of common binary formats, most telling first; `at` is where they stand (default 0). */
const SIGNATURES: readonly { type: string; bytes: string; at?: number; and?: { bytes: string; at: number } }[] = [
  { type: 'image/png', bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/jpeg', bytes: '\xff\xd8\xff' },
  { type: 'image/gif', bytes: 'GIF87a' },
  { type: 'image/gif', bytes: 'GIF89a' },
  { type: 'image/webp', bytes: 'RIFF', and: { bytes: 'WEBP', at: 8 } },
  { type: 'audio/wav', bytes: 'RIFF', and: { bytes: 'WAVE', at: 8 } },
  { type: 'video/x-msvideo', bytes: 'RIFF', and: { bytes: 'AVI ', at: 8 } },
  { type: 'image/avif', bytes: 'ftypavif', at: 4 },
  { type: 'image/avif', bytes: 'ftypavis', at: 4 },
  { type: 'image/heic', bytes: 'ftypheic', at: 4 },
  { type: 'image/heif', bytes: 'ftypmif1', at: 4 },
  { type: 'audio/mp4', bytes: 'ftypM4A', at: 4 },
  { type: 'audio/mp4', bytes: 'ftypM4B', at: 4 },
  { type: 'video/quicktime', bytes: 'ftypqt  ', at: 4 },
  { type: 'video/mp4', bytes: 'ftyp', at: 4 },
  { type: 'image/tiff', bytes: 'II*\0' },
  { type: 'image/tiff', bytes: 'MM\0*' },
  { type: 'image/bmp', bytes: 'BM', and: { bytes: '\0\0\0\0', at: 6 } },
  { type: 'image/x-icon', bytes: '\0\0\x01\0' },
  { type: 'application/pdf', bytes: '%PDF-' },
  { type: 'application/zip', bytes: 'PK\x03\x04' },
  { type: 'application/zip', bytes: 'PK\x05\x06' },
  { type: 'application/gzip', bytes: '\x1f\x8b' },
  { type: 'application/x-bzip2', bytes: 'BZh', and: { bytes: '1AY&SY', at: 4 } },
  { type: 'application/x-xz', bytes: '\xfd7zXZ\0' },
  { type: 'application/zstd', bytes: '\x28\xb5\x2f\xfd' },
  { type: 'application/x-7z-compressed', bytes: '7z\xbc\xaf\x27\x1c' },
  { type: 'application/x-tar', bytes: 'ustar', at: 257 },
  { type: 'application/x-elf', bytes: '\x7fELF' },
  { type: 'application/x-mach-binary', bytes: '\xcf\xfa\xed\xfe' },
  { type: 'application/vnd.sqlite3', bytes: 'SQLite format 3\0' },
  { type: 'application/wasm', bytes: '\0asm' },
  { type: 'audio/ogg', bytes: 'OggS' },
  { type: 'audio/flac', bytes: 'fLaC' },
  { type: 'audio/mpeg', bytes: 'ID3', and: { bytes: '\0', at: 4 } },
  { type: 'audio/mpeg', bytes: '\xff\xfb' },
  { type: 'audio/mpeg', bytes: '\xff\xfa' },
  { type: 'audio/mpeg', bytes: '\xff\xf3' },
  { type: 'audio/mpeg', bytes: '\xff\xf2' },
  { type: 'video/webm', bytes: '\x1aE\xdf\xa3', and: { bytes: 'webm', at: 24 } },
  { type: 'video/webm', bytes: '\x1aE\xdf\xa3', and: { bytes: 'webm', at: 31 } },
  { type: 'video/x-matroska', bytes: '\x1aE\xdf\xa3' },
  { type: 'font/woff2', bytes: 'wOF2' },
]

/** The media type of a binary file by its first bytes (at least 262 of them where the file has so many), or undefined. */
export function sniffType(head: Buffer): string | undefined {
  return SIGNATURES.find(
    (one) =>
      standsAt(head, one.bytes, one.at ?? 0) && (one.and === undefined || standsAt(head, one.and.bytes, one.and.at)),
  )?.type
}

function standsAt(head: Buffer, bytes: string, at: number): boolean {
  return head.toString('latin1', at, at + bytes.length) === bytes
}

import { readSync } from 'node:fs'
import type { OpenedFile } from '../../workspace/files.js'
import type { Line } from './hits.js'

/** A file in UTF-16 has to be read and decoded whole before ripgrep's offsets mean anything. */
const MAX_UTF16_BYTES = 32 * 1024 * 1024

/**
 * Keeps the lines that really stand in the opened file where ripgrep saw them (GU-50): ripgrep opens files by name, so a
 * folder that was swapped for a link could have led it elsewhere; what it read there must not be shown.
 */
export function verifiedLines(file: OpenedFile, lines: readonly Line[]): Line[] {
  const read = readerOf(file)
  return lines.filter((line) => {
    if (line.window === undefined) return true
    const { bytes, start } = line.window
    return read(line.offset + start, bytes.length)?.equals(bytes) === true
  })
}

type Reader = (position: number, length: number) => Buffer | undefined

/** Positions count as ripgrep counts them: after a BOM, and in UTF-8. */
function readerOf(file: OpenedFile): Reader {
  const mark = readAt(file.fd, 0, 3)
  if (mark[0] === 0xef && mark[1] === 0xbb && mark[2] === 0xbf) return (at, length) => readAt(file.fd, at + 3, length)
  const isLittle = mark[0] === 0xff && mark[1] === 0xfe
  if (!isLittle && !(mark[0] === 0xfe && mark[1] === 0xff)) return (at, length) => readAt(file.fd, at, length)
  if (file.stat.size > BigInt(MAX_UTF16_BYTES)) return () => undefined
  const decoded = new TextDecoder(isLittle ? 'utf-16le' : 'utf-16be').decode(readAt(file.fd, 0, Number(file.stat.size)))
  const utf8 = Buffer.from(decoded, 'utf8')
  return (at, length) => utf8.subarray(at, at + length)
}

function readAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const count = readSync(fd, buffer, done, length - done, position + done)
    if (count === 0) break
    done += count
  }
  return buffer.subarray(0, done)
}

import { isUtf8 } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { type BigIntStats, read as readCallback, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { KikiError } from '../lib/errors.js'
import { countLineEnds, type Detected, type LineEnds, wholeCharacters } from './encoding.js'

const readAsync = promisify(readCallback)

/** Bytes that are held of a file at a time, and the least distance between two marks of its index. */
export const WINDOW_BYTES = 64 * 1024
/** Most marks of one index: those of a larger file lie farther apart. */
const MAX_MARKS = 4096
/** Windows that are read without letting others have a turn (1 MiB). */
const WINDOWS_PER_TURN = 16
/**
 * Files up to this size are read through once, so that their SHA-256 and number of lines are known (FI-01), and by
 * synchronous calls, which cost a fraction of asynchronous ones (spec/speed.md).
 */
export const WHOLE_FILE_BYTES = 16 * 1024 * 1024
/** An index is kept only where the file had been left alone this long: until then a change may not move its time stamp. */
const SETTLED_MS = 2000
const KEPT_INDEXES = 64

export type TextFile = Extract<Detected, { text: true }>

/** A file read by seeking through one window. */
export interface ByteSource {
  size: number
  /** Bytes from `position` on: `atLeast` (default 4) unless the file ends, at most a window. Valid until the next call. */
  at(position: number, atLeast?: number): Promise<Buffer>
}

/** Opens a window on `fd`, whose file has `size` bytes. Its calls throw `cancelled` once `signal` is aborted. */
export function byteSource(fd: number, size: number, signal: AbortSignal): ByteSource {
  const buffer = Buffer.allocUnsafeSlow(Math.min(WINDOW_BYTES, Math.max(size, 1)))
  let start = 0
  let length = 0
  const source: ByteSource = {
    size,
    async at(position, atLeast = 4) {
      const offset = position - start
      const ready = length - offset
      if (offset >= 0 && ready > 0 && (ready >= atLeast || start + length >= source.size)) {
        return buffer.subarray(offset, length)
      }
      if (signal.aborted) throw new KikiError('cancelled', 'The read was cancelled before it was done.')
      const wanted = Math.max(0, Math.min(buffer.length, source.size - position))
      start = position
      length = 0
      while (length < wanted) {
        const count =
          size <= WHOLE_FILE_BYTES
            ? readSync(fd, buffer, length, wanted - length, position + length)
            : (await readAsync(fd, buffer, length, wanted - length, position + length)).bytesRead
        // Somebody cut the file short meanwhile: it ends here.
        if (count === 0) source.size = position + length
        if (count === 0) break
        length += count
      }
      return buffer.subarray(0, length)
    },
  }
  return source
}

/** What is known of where a file's lines begin: how many line ends stand before each mark. */
export interface LineIndex {
  file: TextFile
  marks: { position: number; ends: number }[]
  /** All before this was looked at. */
  position: number
  /** Looked at so far. */
  windows: number
  ends: LineEnds
  /** The last unit looked at is a line end, so that nothing begins after it. */
  atLineStart: boolean
  done: boolean
  /** Only for files up to {@link WHOLE_FILE_BYTES}, once done. */
  sha256?: string
  hash: Hash | undefined
}

export function newLineIndex(file: TextFile, size: number): LineIndex {
  return {
    file,
    marks: [{ position: file.bom, ends: 0 }],
    position: 0,
    windows: 0,
    ends: { lf: 0, crlf: 0, cr: false },
    atLineStart: true,
    done: false,
    hash: size <= WHOLE_FILE_BYTES ? createHash('sha256') : undefined,
  }
}

/** Looks at the next window of the file. */
export async function extendIndex(index: LineIndex, source: ByteSource): Promise<void> {
  const window = await source.at(index.position)
  const last = index.position + window.length >= source.size
  const bytes = last ? window : window.subarray(0, wholeCharacters(window, index.file.encoding))
  index.hash?.update(bytes)
  const text = index.position === 0 ? bytes.subarray(index.file.bom) : bytes
  if (index.file.encoding === 'utf-8' && !isUtf8(bytes)) index.file = { ...index.file, encoding: 'unknown-8bit' }
  countLineEnds(text, index.file.encoding, index.ends)
  if (text.length > 0) index.atLineStart = endsWithLineEnd(text, index.file.encoding)
  index.position += bytes.length
  const apart = Math.max(WINDOW_BYTES, source.size / MAX_MARKS)
  if (index.position - (index.marks.at(-1)?.position ?? 0) >= apart)
    index.marks.push({ position: index.position, ends: lineEnds(index) })
  if (++index.windows % WINDOWS_PER_TURN === 0) await setImmediate()
  if (!last) return
  index.done = true
  if (index.hash) index.sha256 = index.hash.digest('hex')
  index.hash = undefined
}

export function lineEnds(index: LineIndex): number {
  return index.ends.lf + index.ends.crlf
}

/** Lines of a file that was looked through: a last line end does not begin another line. */
export function totalLines(index: LineIndex): number {
  return lineEnds(index) + (index.atLineStart ? 0 : 1)
}

function endsWithLineEnd(bytes: Buffer, encoding: TextFile['encoding']): boolean {
  const tail = bytes.subarray(-2)
  if (encoding === 'utf-16le') return tail[0] === 10 && tail[1] === 0
  if (encoding === 'utf-16be') return tail[0] === 0 && tail[1] === 10
  return tail.at(-1) === 10
}

/** The indexes of the files that were read last, so that the next page of a large file is one seek away. */
export interface LineIndexes {
  /** An unfinished index is lent to one reader at a time. */
  take(stat: BigIntStats): LineIndex | undefined
  keep(stat: BigIntStats, index: LineIndex): void
}

export function createLineIndexes(now: () => number = Date.now): LineIndexes {
  const kept = new Map<string, LineIndex>()
  return {
    take(stat) {
      const key = keyOf(stat)
      const index = kept.get(key)
      if (index === undefined) return undefined
      kept.delete(key)
      if (index.done) kept.set(key, index)
      return index
    },
    keep(stat, index) {
      const changed = Math.max(Number(stat.mtimeMs), Number(stat.ctimeMs))
      if (now() - changed < SETTLED_MS) return
      kept.set(keyOf(stat), index)
      const oldest = kept.size > KEPT_INDEXES ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
    },
  }
}

/** The same key means the same content: identity, size and both time stamps, of which a program can set only one. */
export function keyOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`
}

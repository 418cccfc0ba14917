import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A file of output; its name is the offset of its first byte. */
export interface Segment {
  start: number
  size: number
}

/** Segments that the cap is divided into: half are kept from the beginning, half from the end. */
const PARTS = 8

/** Appends to the files of one operation's output, which together stay below a cap: beyond it the middle is dropped (SH-01). */
export function createSegments(folder: string, maxBytes: number) {
  const each = Math.max(1, Math.floor(maxBytes / PARTS))
  const segments: Segment[] = []
  let fd: number | undefined
  let end = 0

  function current(): number {
    fd ??= begin()
    return fd
  }

  function begin(): number {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const opened = openSync(join(folder, String(end)), 'ax', 0o600)
    segments.push({ start: end, size: 0 })
    return opened
  }

  function close(): void {
    if (fd !== undefined) closeSync(fd)
    fd = undefined
  }

  return {
    append(bytes: Buffer): void {
      writeAll(current(), bytes)
      const last = segments.at(-1)
      if (last !== undefined) last.size += bytes.length
      end += bytes.length
    },
    /** To be called where a block ends: a next file begins there if this one is full. @returns what was dropped for it. */
    blockEnded(): Segment | undefined {
      const last = segments.at(-1)
      if (last === undefined || last.size < each) return undefined
      close()
      if (segments.length < PARTS) return undefined
      const [dropped] = segments.splice(PARTS / 2, 1)
      if (dropped !== undefined) rmSync(join(folder, String(dropped.start)), { force: true })
      return dropped
    },
    close,
    list: (): readonly Segment[] => segments,
  }
}

/** The files of one operation's output, in their order; none where there is no such folder. */
export function segmentsIn(folder: string): Segment[] {
  return names(folder)
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ start: Number(name), size: statSync(join(folder, name)).size }))
    .sort((a, b) => a.start - b.start)
}

/** Bytes of one file that are there, at most those asked for. */
export function readSegment(folder: string, segment: Segment, from: number, to: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, Math.min(to, segment.start + segment.size) - from))
  const fd = openSync(join(folder, String(segment.start)), 'r')
  try {
    let done = 0
    while (done < buffer.length) {
      const read = readSync(fd, buffer, done, buffer.length - done, from - segment.start + done)
      if (read === 0) break
      done += read
    }
    return buffer.subarray(0, done)
  } finally {
    closeSync(fd)
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

function writeAll(fd: number, bytes: Buffer): void {
  let done = 0
  while (done < bytes.length) done += writeSync(fd, bytes, done)
}

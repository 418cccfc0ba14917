import { isUtf8 } from 'node:buffer'
import { withoutDot } from './hits.js'

/** A file that ripgrep names, with its count of matching lines where that was asked for. */
export interface NamedFile {
  name: string
  count: number
}

export interface NameCollector {
  /** One piece of ripgrep's output between NUL bytes. False: enough was seen. */
  onPiece(piece: Buffer): boolean
  /** Call once the output ended. */
  finish(): void
  files: NamedFile[]
  /** Counted files so far, skipped ones included. */
  total: number
  /** Matching lines in all of them, where counts were asked for. */
  matches: number
  more: boolean
  badNames: number
}

/** Reads `rg --null --files-with-matches`, or with `counts` `rg --null --count`, whose counts follow the NUL. */
export function collectNames(options: {
  skip: number
  take: number
  counts: boolean
  mayCount(name: string): boolean
}): NameCollector {
  let pending: Buffer | undefined

  const add = (raw: Buffer, count: number): boolean => {
    if (!isUtf8(raw)) {
      collector.badNames += 1
      return true
    }
    const name = withoutDot(raw.toString('utf8'))
    if (!options.mayCount(name)) return true
    if (collector.total >= options.skip + options.take) {
      collector.more = true
      return false
    }
    collector.total += 1
    collector.matches += count
    if (collector.total > options.skip) collector.files.push({ name, count })
    return true
  }

  const collector: NameCollector = {
    files: [],
    total: 0,
    matches: 0,
    more: false,
    badNames: 0,
    onPiece(piece) {
      if (!options.counts) return add(piece, 1)
      // `count of the file before`, a line end, `this file`; the first piece is a name alone.
      const before = pending
      const cut = before === undefined ? -1 : piece.indexOf(0x0a)
      pending = Buffer.from(piece.subarray(cut + 1))
      return before === undefined || add(before, Number(piece.toString('latin1', 0, cut)))
    },
    finish() {
      const last = pending
      pending = undefined
      // The last count was the last piece; nothing stands after its line end.
      if (last !== undefined && last.length > 0) throw new Error('the list of counts was cut')
    },
  }
  return collector
}

import { cutWindow, type Window } from './window.js'

/** A matching line, or one beside it. */
export interface Line {
  isMatch: boolean
  /** 1 for the first; undefined where ripgrep's message was too long to read. */
  number: number | undefined
  /** Where the matched lines begin in the file as ripgrep reads it, in bytes (without a BOM, and as UTF-8). */
  offset: number
  /** Undefined for a line that is too long to be read here. */
  window: Window | undefined
}

export interface FileHits {
  /** Relative to the searched folder. */
  name: string
  lines: Line[]
}

export interface HitCollector {
  /** One message of `rg --json`. False: enough was seen. */
  onMessage(message: Buffer): boolean
  /** The start of a message that was too long to be kept. */
  onTooLong(start: Buffer): boolean
  files: FileHits[]
  /** Matching lines so far, skipped ones included. */
  matches: number
  /** True where there was more than `take`, or more than fits in memory. */
  more: boolean
  /** Files with hits whose names are not UTF-8; no tool can open them. */
  badNames: number
  /** Files with hits that hold a NUL byte: ripgrep takes them for binary from there on and stops. */
  cut: number
}

type Text = { text: string } | { bytes: string }

type Message =
  | { type: 'begin'; data: { path: Text } }
  | {
      type: 'match' | 'context'
      data: { lines: Text; line_number: number; absolute_offset: number; submatches: { start: number }[] }
    }
  | { type: 'end'; data: { binary_offset: number | null } }
  | { type: 'summary' }

/** What one collection may keep, in bytes. */
const KEPT_BYTES = 16 * 1024 * 1024
/** Roughly what a kept line costs besides its bytes. */
const LINE_COST = 200

/** Keeps the hits from `skip` on, at most `take`, with the lines around them. */
export function collectHits(options: {
  skip: number
  take: number
  /** Asked once a file, at its first hit. */
  mayCount(name: string): boolean
}): HitCollector {
  let current: FileHits | undefined
  let kept = 0

  const begin = (path: Text): void => {
    current = undefined
    if ('bytes' in path) collector.badNames += 1
    else {
      const name = withoutDot(path.text)
      if (options.mayCount(name)) current = { name, lines: [] }
    }
  }
  const add = (line: Line): boolean => {
    if (current === undefined) return true
    if (line.isMatch) {
      collector.matches += 1
      if (collector.matches <= options.skip) {
        // What stood before a skipped match is of no use; what follows may stand before the next.
        current.lines.length = 0
        return true
      }
      if (collector.matches > options.skip + options.take || kept > KEPT_BYTES) {
        collector.more = true
        collector.matches -= 1
        return false
      }
    }
    if (collector.files.at(-1) !== current) collector.files.push(current)
    current.lines.push(line)
    kept += LINE_COST + (line.window?.bytes.length ?? 0)
    return true
  }

  const collector: HitCollector = {
    files: [],
    matches: 0,
    more: false,
    badNames: 0,
    cut: 0,
    onMessage(bytes) {
      // A skipped match is only counted: reading a million of them takes longer than finding them.
      if (current !== undefined && collector.matches < options.skip && saysMatch(bytes)) {
        collector.matches += 1
        current.lines.length = 0
        return true
      }
      const message = JSON.parse(bytes.toString('utf8')) as Message
      if (message.type === 'begin') begin(message.data.path)
      if (message.type === 'end' && message.data.binary_offset !== null && current !== undefined) collector.cut += 1
      if (message.type !== 'match' && message.type !== 'context') return true
      const { lines, line_number: number, absolute_offset: offset, submatches } = message.data
      if (current === undefined) return true
      const window = cutWindow(bytesOf(lines), submatches[0]?.start ?? 0)
      return add({ isMatch: message.type === 'match', number, offset, window })
    },
    onTooLong(start) {
      return saysMatch(start) ? add({ isMatch: true, number: undefined, offset: 0, window: undefined }) : true
    },
  }
  return collector
}

function saysMatch(message: Buffer): boolean {
  return message.subarray(0, 30).includes('"type":"match"')
}

/** ripgrep is told to search `.`, and says so in each name. */
export function withoutDot(name: string): string {
  return name.startsWith('./') ? name.slice(2) : name
}

function bytesOf(text: Text): Buffer {
  return 'text' in text ? Buffer.from(text.text, 'utf8') : Buffer.from(text.bytes, 'base64')
}

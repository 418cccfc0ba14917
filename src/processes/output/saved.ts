import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { safeByteCut, terminalText } from '../../lib/terminal-text.js'
import { BLOCK_BYTES, type Block, createBlocks } from './blocks.js'
import { readSegment, type Segment, segmentsIn } from './segments.js'

/** The output of one command as it is saved, read without ever being held whole. */
export interface SavedOutput {
  /** All bytes that were written, the dropped ones too. */
  bytes: number
  /** Bytes of the middle that were dropped. */
  dropped: number
  /** UTF-16 code units of the text, what is said in place of the dropped part included. */
  chars: number
  text(start: number, end: number): string
  /** Bytes as they were written, those that were dropped left out; offsets count the kept ones. */
  raw(start: number, end: number): Buffer
}

/** A stretch of the text: a block, or what stands for what was dropped. */
interface Piece {
  char: number
  chars: number
  block?: Block
  says?: string
}

export const INDEX_FILE = 'index.json'
const INDEX = z.object({ bytes: z.int(), blocks: z.array(z.tuple([z.int(), z.int(), z.int()])) })

export interface OutputIndex {
  bytes: number
  blocks: readonly Block[]
}

export function encodeIndex({ bytes, blocks }: OutputIndex): string {
  return JSON.stringify({ bytes, blocks: blocks.map(({ byte, size, chars }) => [byte, size, chars]) })
}

/** The output that a folder holds; undefined where there is none. */
export function openSaved(folder: string): SavedOutput | undefined {
  const segments = segmentsIn(folder)
  if (segments.length === 0) return undefined
  return savedOutput(folder, segments, readIndex(folder, segments))
}

/** As it was written at the end; made again from the files where a dead host could not write it. */
function readIndex(folder: string, segments: readonly Segment[]): OutputIndex {
  const file = join(folder, INDEX_FILE)
  if (existsSync(file)) {
    const { bytes, blocks } = INDEX.parse(JSON.parse(readFileSync(file, 'utf8')))
    return { bytes, blocks: blocks.map(([byte, size, chars]) => ({ byte, size, chars })) }
  }
  const blocks: Block[] = []
  let reader = createBlocks((block) => blocks.push(block))
  let end = 0
  for (const segment of segments) {
    if (segment.start !== end) {
      reader.end()
      reader = createBlocks((block) => blocks.push(block), segment.start)
    }
    end = segment.start + segment.size
    for (let at = segment.start; at < end; at += BLOCK_BYTES) {
      reader.push(readSegment(folder, segment, at, Math.min(at + BLOCK_BYTES, end)))
    }
  }
  reader.end()
  return { bytes: end, blocks }
}

export function savedOutput(folder: string, segments: readonly Segment[], index: OutputIndex): SavedOutput {
  const pieces = piecesOf(index)
  const last = pieces.at(-1)
  const kept = index.blocks.reduce((sum, { size }) => sum + size, 0)
  const blockText = (block: Block): string =>
    terminalText(readRange(folder, segments, block.byte, block.byte + block.size))
  return {
    bytes: index.bytes,
    dropped: index.bytes - kept,
    chars: last === undefined ? 0 : last.char + last.chars,
    text(start, end) {
      let text = ''
      for (const piece of between(pieces, start, end)) {
        const whole = piece.says ?? (piece.block === undefined ? '' : blockText(piece.block))
        text += whole.slice(Math.max(0, start - piece.char), end - piece.char)
      }
      return text
    },
    raw(start, end) {
      const found: Buffer[] = []
      let at = 0
      for (const { byte, size } of index.blocks) {
        if (at < end && at + size > start) {
          const from = byte + Math.max(0, start - at)
          found.push(readRange(folder, segments, from, byte + Math.min(size, end - at)))
        }
        at += size
      }
      return Buffer.concat(found)
    },
  }
}

function piecesOf({ bytes, blocks }: OutputIndex): Piece[] {
  const pieces: Piece[] = []
  let char = 0
  let byte = 0
  const add = (piece: Omit<Piece, 'char'>) => {
    pieces.push({ char, ...piece })
    char += piece.chars
  }
  const gap = (to: number) => {
    const says = droppedWords(to - byte)
    if (to > byte) add({ says, chars: says.length })
  }
  for (const block of blocks) {
    gap(block.byte)
    add({ block, chars: block.chars })
    byte = block.byte + block.size
  }
  gap(bytes)
  return pieces
}

export function droppedWords(bytes: number): string {
  return `\n[… ${bytes} bytes of output were dropped here: more was written than is kept …]\n`
}

/** The pieces that a range of the text touches, found by halves. */
function between(pieces: readonly Piece[], start: number, end: number): Piece[] {
  let low = 0
  let high = pieces.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const piece = pieces[middle]
    if (piece !== undefined && piece.char + piece.chars <= start) low = middle + 1
    else high = middle
  }
  const found: Piece[] = []
  for (let index = low; index < pieces.length; index++) {
    const piece = pieces[index]
    if (piece === undefined || piece.char >= end) break
    found.push(piece)
  }
  return found
}

/** Bytes of a range as far as they are there. */
export function readRange(folder: string, segments: readonly Segment[], from: number, to: number): Buffer {
  const parts = segments
    .filter(({ start, size }) => start < to && start + size > from)
    .map((segment) => readSegment(folder, segment, Math.max(from, segment.start), to))
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
}

/** A piece of output from one byte on. */
export interface OutputPage {
  text: string
  /** The byte to go on from. */
  next: number
}

/** Where output is read while it is still being written. */
export interface GrowingOutput {
  bytes: number
  segments(): readonly Segment[]
  read(from: number, to: number): Buffer
}

/**
 * At most `limit` characters from a byte on that an earlier page ended at, or that is 0; what may be the beginning of a
 * character or sequence is left for the next page unless the output is over. A negative byte counts from the end, and begins
 * after a line's end.
 */
export function pageFrom(source: GrowingOutput, cursor: number, limit: number, over: boolean): OutputPage {
  const { bytes } = source
  const asked = Math.min(bytes, cursor < 0 ? lineAfter(source, Math.max(0, bytes + cursor)) : cursor)
  const [from, end] = stretchAt(source, asked)
  const says = from > asked ? droppedWords(from - asked) : ''
  // A byte becomes at most one character; escape sequences become none.
  const read = source.read(from, Math.min(end, from + limit))
  const whole = from + read.length === end && (over || end < bytes)
  const cut = whole ? read.length : safeByteCut(read) || (read.length >= limit ? read.length : 0)
  return { text: says + terminalText(read.subarray(0, cut)), next: from + cut }
}

/** Where the kept bytes at or after an offset begin, and where they end without a gap. */
function stretchAt(source: GrowingOutput, offset: number): [from: number, end: number] {
  const segments = source.segments()
  const first = segments.findIndex(({ start, size }) => start + size > offset)
  if (first < 0) return [source.bytes, source.bytes]
  let end = segments[first]?.start ?? 0
  const from = Math.max(offset, end)
  for (const { start, size } of segments.slice(first)) {
    if (start !== end) break
    end = start + size
  }
  return [from, end]
}

function lineAfter(source: GrowingOutput, offset: number): number {
  if (offset === 0) return 0
  const line = source.read(offset - 1, source.bytes).indexOf(0x0a)
  return line < 0 ? offset : offset + line
}

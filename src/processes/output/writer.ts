import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { terminalText } from '../../lib/terminal-text.js'
import { type Block, createBlocks } from './blocks.js'
import { encodeIndex, type GrowingOutput, INDEX_FILE, readRange, type SavedOutput, savedOutput } from './saved.js'
import { createSegments, segmentsIn } from './segments.js'

/** Output that is kept in memory before it goes to a file, in bytes. */
const IN_MEMORY = 64 * 1024
/** What is shown of output that is still coming, in bytes. */
const TAIL_BYTES = 2000

/** How the output of a command that is over is kept. */
export type KeptOutput =
  /** Short, and the very bytes that were written. */
  | { text: string; bytes: number }
  /** In files. */
  | { saved: SavedOutput; bytes: number }

/** Takes the output of one command as it comes. */
export interface OutputWriter extends GrowingOutput {
  push(chunk: Buffer): void
  /** From now on what comes is in files at once, for readers beside this one and after the host's death. */
  save(): void
  /** The last lines, for whoever looks on. */
  tail(): string
  end(): KeptOutput
}

export interface WriterOptions {
  folder: string
  maxBytes: number
  /** Bytes that a file grew by, or shrank. @returns false where there is no room for more: then it is dropped. */
  grew(bytes: number): boolean
  /** What cannot be written is dropped, and the command goes on (GU-42). */
  failed(error: unknown): void
}

export function openWriter(options: WriterOptions): OutputWriter {
  let memory: Buffer[] = []
  let tail = Buffer.alloc(0)
  let bytes = 0
  let files: FileOutput | undefined

  function save(): FileOutput {
    if (files !== undefined) return files
    files = writeFiles(options)
    for (const chunk of memory) files.push(chunk)
    memory = []
    return files
  }

  return {
    get bytes() {
      return bytes
    },
    segments: () => files?.segments() ?? [{ start: 0, size: bytes }],
    read: (from, to) => files?.read(from, to) ?? Buffer.concat(memory).subarray(from, to),
    push(chunk) {
      bytes += chunk.length
      tail = Buffer.concat([tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
      if (files !== undefined) files.push(chunk)
      else memory.push(chunk)
      if (bytes > IN_MEMORY) save()
    },
    save: () => void save(),
    tail: () => terminalText(tail),
    end() {
      if (bytes === 0) return { text: '', bytes }
      if (files === undefined) {
        const all = Buffer.concat(memory)
        const text = terminalText(all)
        if (Buffer.from(text).equals(all)) return { text, bytes }
      }
      return { saved: save().end(), bytes }
    },
  }
}

type FileOutput = ReturnType<typeof writeFiles>

/** What has come is in the files at once; which blocks it makes is written at the end. */
function writeFiles({ folder, maxBytes, grew, failed }: WriterOptions) {
  const files = createSegments(folder, maxBytes)
  let blocks: Block[] = []
  let bytes = 0
  let written = 0
  let full = false

  function append(part: Buffer): void {
    full ||= !grew(part.length)
    if (full) return
    try {
      files.append(part)
      written += part.length
    } catch (error) {
      full = true
      failed(error)
    }
  }

  const cutter = createBlocks((block, piece) => {
    const end = block.byte + block.size
    if (!full && written < end) append(piece.subarray(written - block.byte))
    if (written < end) return
    blocks.push(block)
    const dropped = files.blockEnded()
    if (dropped === undefined) return
    grew(-dropped.size)
    blocks = blocks.filter(({ byte }) => byte < dropped.start || byte >= dropped.start + dropped.size)
  })

  return {
    segments: files.list,
    read: (from: number, to: number) => readRange(folder, files.list(), from, to),
    push(chunk: Buffer): void {
      bytes += chunk.length
      cutter.push(chunk)
      // Whatever came before this chunk is in the files already, unless they are full.
      if (!full && written < bytes) append(chunk.subarray(chunk.length - (bytes - written)))
    },
    end(): SavedOutput {
      cutter.end()
      files.close()
      const index = { bytes, blocks }
      try {
        writeFileSync(join(folder, `${INDEX_FILE}.new`), encodeIndex(index), { mode: 0o600 })
        renameSync(join(folder, `${INDEX_FILE}.new`), join(folder, INDEX_FILE))
      } catch (error) {
        // It is made again from the files when it is needed.
        failed(error)
      }
      return savedOutput(folder, segmentsIn(folder), index)
    },
  }
}

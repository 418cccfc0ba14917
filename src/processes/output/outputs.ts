import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../lib/errors.js'
import type { Log } from '../../lib/log.js'
import { type GrowingOutput, openSaved, readRange, type SavedOutput } from './saved.js'
import { segmentsIn } from './segments.js'
import { type OutputWriter, openWriter } from './writer.js'

export interface OutputLimits {
  /** Bytes that are kept of one operation's output, its first and its last half (SH-01). */
  operation: number
  /** Bytes that are kept in all: beyond it the oldest output that is over goes first. */
  total: number
}

/** What commands have written, one folder an operation. */
export interface Outputs {
  /** For a new operation. */
  open(operationId: string): OutputWriter
  /** The saved output of an operation; undefined where there is none, or none any more. */
  saved(operationId: string): SavedOutput | undefined
  /** As it stands in the files, by bytes. */
  growing(operationId: string): GrowingOutput
  remove(operationId: string): void
}

export interface OutputsOptions {
  /** A folder of the home; made (0700) where it is missing. */
  dir: string
  limits: () => OutputLimits
  log: Pick<Log, 'error' | 'warn'>
}

export function createOutputs({ dir, limits, log }: OutputsOptions): Outputs {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const live = new Set<string>()
  // Ids sort by the time they were made.
  const sizes = new Map(
    readdirSync(dir)
      .sort()
      .map((id) => [id, sizeOf(join(dir, id))]),
  )
  let total = [...sizes.values()].reduce((sum, size) => sum + size, 0)

  function remove(id: string): void {
    total -= sizes.get(id) ?? 0
    sizes.delete(id)
    rmSync(join(dir, id), { recursive: true, force: true })
  }

  /** Makes room by the oldest that are over. */
  function makeRoom(bytes: number): boolean {
    for (const id of sizes.keys()) {
      if (total + bytes <= limits().total) return true
      if (!live.has(id)) {
        log.warn({ operation: id }, 'its output was removed: more was written than is kept in all')
        remove(id)
      }
    }
    return total + bytes <= limits().total
  }

  return {
    open(id) {
      live.add(id)
      const writer = openWriter({
        folder: join(dir, id),
        maxBytes: limits().operation,
        failed: (error) =>
          log.error({ operation: id, error: messageOf(error) }, 'output of a command could not be saved'),
        grew(bytes) {
          if (bytes > 0 && !makeRoom(bytes)) return false
          sizes.set(id, (sizes.get(id) ?? 0) + bytes)
          total += bytes
          return true
        },
      })
      return {
        ...writer,
        get bytes() {
          return writer.bytes
        },
        end() {
          live.delete(id)
          return writer.end()
        },
      }
    },
    saved(id) {
      try {
        return openSaved(join(dir, id))
      } catch (error) {
        log.error({ operation: id, error: messageOf(error) }, 'saved output cannot be read')
        return undefined
      }
    },
    growing(id) {
      const folder = join(dir, id)
      const segments = segmentsIn(folder)
      const last = segments.at(-1)
      return {
        bytes: last === undefined ? 0 : last.start + last.size,
        segments: () => segments,
        read: (from, to) => readRange(folder, segments, from, to),
      }
    },
    remove,
  }
}

function sizeOf(folder: string): number {
  return segmentsIn(folder).reduce((sum, { size }) => sum + size, 0)
}

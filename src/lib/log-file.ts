import { closeSync, fstatSync, openSync, renameSync, statSync } from 'node:fs'
import pino from 'pino'

/** Bytes after which a new file is begun. */
const MAX_BYTES = 10 * 1024 * 1024
/** Files that are kept beside the current one: `kiki.log.1` is the newest of them. */
const KEPT = 4
/** Lines that wait for a slow or full disk; more are dropped, in bytes. */
const MAX_WAITING_BYTES = 1024 * 1024

export interface LogFile {
  /** Takes whole lines. They are written in the background. */
  write(line: string): void
  /** Resolves when all is written that can be. */
  close(): Promise<void>
}

export interface LogFileOptions {
  maxBytes?: number
  kept?: number
  /** Lines cannot be written, or the file not be exchanged; told of each failure. */
  onError(error: unknown): void
}

/**
 * Lines to a file of mode 0600 that is renamed, and begun anew, when it has grown past `maxBytes` or is found so. No line is
 * lost or split by that: what the earlier file still has to write, it writes under its new name.
 * @throws the system's error where the file cannot be opened.
 */
export function openLogFile(path: string, options: LogFileOptions): LogFile {
  const { maxBytes = MAX_BYTES, kept = KEPT, onError } = options
  const ending = new Set<Promise<void>>()
  let size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size >= maxBytes) tell(() => shift(path, kept))
  let current = begin()

  function begin() {
    const fd = openSync(path, 'a', 0o600)
    size = fstatSync(fd).size
    return destinationOf(fd, onError)
  }

  /** Whatever fails, lines go on into the file that is open. */
  function tell(step: () => void): void {
    try {
      step()
    } catch (error) {
      onError(error)
    }
  }

  function exchange(): void {
    // Also where it fails: the next attempt comes after as many bytes again.
    size = 0
    shift(path, kept)
    const before = current
    current = begin()
    const ended = before.end().finally(() => ending.delete(ended))
    ending.add(ended)
  }

  return {
    write(line) {
      current.write(line)
      size += Buffer.byteLength(line)
      if (size >= maxBytes) tell(exchange)
    },
    async close() {
      await Promise.all([...ending, current.end()])
    },
  }
}

function destinationOf(fd: number, onError: (error: unknown) => void) {
  let destination: ReturnType<typeof pino.destination>
  try {
    destination = pino.destination({ fd, sync: false, maxLength: MAX_WAITING_BYTES })
  } catch (error) {
    closeSync(fd)
    throw error
  }
  destination.on('error', onError)
  return {
    write: (line: string) => void destination.write(line),
    end: () =>
      new Promise<void>((resolve) => {
        destination.once('close', resolve)
        // What cannot be written now never will be.
        destination.once('error', () => destination.destroy())
        destination.end()
      }),
  }
}

/** `kiki.log` becomes `kiki.log.1`, that `kiki.log.2`, and so on; the oldest goes. */
function shift(path: string, kept: number): void {
  for (let n = kept - 1; n >= 0; n--) {
    const from = n === 0 ? path : `${path}.${n}`
    if (statSync(from, { throwIfNoEntry: false }) !== undefined) renameSync(from, `${path}.${n + 1}`)
  }
}

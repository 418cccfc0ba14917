import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { KikiError, messageOf } from '../lib/errors.js'

/** What one file change was. Paths are absolute and real. */
export interface ChangeRecord {
  /** Position in its operation, from 0. */
  seq: number
  kind: 'create' | 'modify' | 'delete' | 'move' | 'mkdir'
  path: string
  /** Where a `move` went. */
  to?: string
  /** What was made, deleted or moved, where it was no regular file. A deleted link's earlier content is its target. */
  node?: 'directory' | 'link'
  /** Permission bits before the change, if something was there. */
  mode?: number
  /** Permission bits after a modification that changed them. */
  afterMode?: number
  /** `uid:gid` of what was deleted. */
  owner?: string
  /** Time of birth, in ns, of a deleted file that had other names (hard links): undo finds it by this and its identity. */
  shared?: string
  /** SHA-256 in hex of the content before: of files (moved ones up to 64 MiB) and of the targets of links. */
  beforeSha256?: string
  /** SHA-256 in hex of the content after, for files that exist afterwards. */
  afterSha256?: string
  /** Bytes of earlier content kept in the journal file. */
  size?: number
  /** True where the file was written in place because it has other hard links: recovery puts the earlier content back (FI-06). */
  inPlace?: boolean
  /** `device:inode` of what was there before, so that recovery and undo know it again. */
  identity?: string
  /** Name of the temporary file beside `path`; only a crash leaves it behind, and recovery removes it. */
  temporary?: string
  /** The change that this one takes back (FI-14). */
  undoes?: { operationId: string; seq: number }
}

/** Keeps what was there before a change; one per operation. */
export interface Journal {
  /**
   * Saves the earlier content and returns once it is on disk (file and folder synced); only then may the change begin.
   * @throws KikiError `too_large` or `internal_error` where it cannot be kept; then nothing may be changed.
   * A record says that the change was about to begin, not that it happened: compare what is there with its hashes.
   */
  record(change: Omit<ChangeRecord, 'seq' | 'size'>, before?: Uint8Array): ChangeRecord
  /** What was recorded so far, in order. */
  records(): readonly ChangeRecord[]
}

/** Earlier content that one operation may keep, in bytes. */
export const MAX_KEPT_BYTES = 256 * 1024 * 1024

const VERSION = 1
const NEWLINE = 0x0a
/** Two paths of 4,096 characters, escaped at their worst, fit. */
const MAX_HEADER_BYTES = 64 * 1024

const HEADER = z.object({
  version: z.literal(VERSION),
  operationId: z.string(),
  seq: z.number().int().min(0),
  kind: z.enum(['create', 'modify', 'delete', 'move', 'mkdir']),
  path: z.string(),
  to: z.string().optional(),
  node: z.enum(['directory', 'link']).optional(),
  mode: z.number().optional(),
  afterMode: z.number().optional(),
  owner: z.string().optional(),
  shared: z.string().optional(),
  beforeSha256: z.string().optional(),
  afterSha256: z.string().optional(),
  size: z.number().int().min(0).optional(),
  inPlace: z.boolean().optional(),
  identity: z.string().optional(),
  temporary: z.string().optional(),
  undoes: z.object({ operationId: z.string(), seq: z.number().int().min(0) }).optional(),
})

/**
 * A journal in files: `<dir>/<operationId>.<seq>` (0600) holds a line of JSON, then the earlier bytes as they were.
 * A file that is there already is never written over.
 * @param options.dir a folder of the home; made with mode 0700 where it is missing.
 * @param options.firstSeq number of the first change (default 0); recovery goes on where the dead host stopped.
 */
export function createJournal(options: { dir: string; operationId: string; firstSeq?: number }): Journal {
  const { dir, operationId, firstSeq = 0 } = options
  const records: ChangeRecord[] = []
  let kept = 0
  return {
    record(change, before) {
      const bytes = before?.length ?? 0
      if (kept + bytes > MAX_KEPT_BYTES) throw tooMuch()
      const record: ChangeRecord = {
        seq: firstSeq + records.length,
        ...change,
        ...(before === undefined ? {} : { size: before.length }),
      }
      const header = `${JSON.stringify({ version: VERSION, operationId, ...record })}\n`
      keep(join(dir, fileName(operationId, record.seq)), Buffer.from(header), before)
      kept += bytes
      records.push(record)
      return record
    },
    records: () => records,
  }
}

/**
 * The changes that an operation recorded, in order; used after a crash and by undo.
 * A torn last file is left out: its change never began, because `record` had not returned.
 * @throws KikiError `internal_error` where an earlier one is damaged.
 */
export function readJournal(dir: string, operationId: string): ChangeRecord[] {
  const count = countOf(dir, operationId)
  const records: ChangeRecord[] = []
  for (let seq = 0; seq < count; seq += 1) {
    const entry = readEntry(join(dir, fileName(operationId, seq)), operationId, seq)
    if (entry !== undefined) records.push(entry.record)
    else if (seq < count - 1) throw damaged(operationId, seq)
  }
  return records
}

/**
 * The earlier content of one recorded change; undefined where nothing was kept (a created file, a folder, a move).
 * @throws KikiError `not_found`, or `internal_error` where the kept bytes do not have their recorded hash.
 */
export function journalContent(dir: string, operationId: string, seq: number): Buffer | undefined {
  if (!Number.isInteger(seq) || seq < 0 || seq >= countOf(dir, operationId)) {
    throw new KikiError('not_found', `Operation ${operationId} has no change ${seq}.`, {
      hint: 'List its changes first.',
    })
  }
  const path = join(dir, fileName(operationId, seq))
  const entry = readEntry(path, operationId, seq)
  if (entry === undefined) throw damaged(operationId, seq)
  if (entry.record.size === undefined) return undefined
  const content = readFileSync(path).subarray(entry.offset)
  const { beforeSha256 } = entry.record
  if (beforeSha256 !== undefined && sha256(content) !== beforeSha256) throw damaged(operationId, seq)
  return content
}

/** Forgets what an operation kept; its changes cannot be undone any more. Nothing there is no error. */
export function removeJournal(dir: string, operationId: string): void {
  // The last one first, so that a crash in between leaves no gap.
  for (let seq = countOf(dir, operationId) - 1; seq >= 0; seq -= 1) rmSync(join(dir, fileName(operationId, seq)))
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function keep(path: string, header: Buffer, before: Uint8Array | undefined): void {
  try {
    makeFolder(dirname(path))
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      writeAll(fd, header)
      if (before !== undefined) writeAll(fd, before)
      fsyncSync(fd)
    } catch (error) {
      rmSync(path, { force: true })
      throw error
    } finally {
      closeSync(fd)
    }
    syncFolder(dirname(path))
  } catch (error) {
    throw new KikiError(
      'internal_error',
      `The earlier content could not be kept, so nothing was changed: ${messageOf(error)}.`,
      {
        hint: "Ask the owner to check the disk of Kiki's home.",
        cause: error,
      },
    )
  }
}

function makeFolder(dir: string): void {
  if (mkdirSync(dir, { recursive: true, mode: 0o700 }) !== undefined) syncFolder(dirname(dir))
}

/** Writes every byte; `writeSync` alone may write fewer. */
export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done)
}

export function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0))
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** How many changes have a file; they are numbered without a gap, so the folder need not be listed. */
function countOf(dir: string, operationId: string): number {
  let count = 0
  while (lstatSync(join(dir, fileName(operationId, count)), { throwIfNoEntry: false }) !== undefined) count += 1
  return count
}

/** Undefined where the file is torn: cut in its first line, or not as long as it says. `content` reads the rest. */
function readEntry(
  path: string,
  operationId: string,
  seq: number,
): { record: ChangeRecord; offset: number } | undefined {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  try {
    const head = Buffer.alloc(MAX_HEADER_BYTES)
    const bytes = head.subarray(0, readSync(fd, head, 0, head.length, 0))
    const end = bytes.indexOf(NEWLINE)
    if (end === -1) return undefined
    const header = HEADER.safeParse(parseLine(bytes.toString('utf8', 0, end)))
    if (!header.success || header.data.operationId !== operationId || header.data.seq !== seq) return undefined
    if (fstatSync(fd).size !== end + 1 + (header.data.size ?? 0)) return undefined
    const { version: _version, operationId: _operationId, ...record } = header.data
    return { record: record satisfies Loose<ChangeRecord> as ChangeRecord, offset: end + 1 }
  } finally {
    closeSync(fd)
  }
}

/** What zod makes of optional fields. */
type Loose<T> = { [K in keyof T]: T[K] | undefined }

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function fileName(operationId: string, seq: number): string {
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(operationId)) throw new Error('an operation id is no file name')
  return `${operationId}.${seq}`
}

function tooMuch(): KikiError {
  return new KikiError('too_large', 'This operation would change more than 256 MiB of earlier content.', {
    hint: 'Do it in smaller parts.',
  })
}

function damaged(operationId: string, seq: number): KikiError {
  return new KikiError('internal_error', `The kept content of change ${seq} of operation ${operationId} is damaged.`, {
    hint: "Ask the owner to check the disk of Kiki's home; this change cannot be undone.",
  })
}

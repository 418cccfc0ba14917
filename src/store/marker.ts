import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import writeFileAtomic from 'write-file-atomic'
import { z } from 'zod'

/**
 * What a home remembers of its database outside of it: that it has one (a lost one is not silently replaced), and which
 * write-ahead log is its own, since SQLite would replay the log of any other database into it (GU-43).
 */
export interface Marker {
  /** The log's first salt when the last host opened it; undefined: not known, any log will do. */
  walSalt?: number | undefined
}

const schema = z.object({ walSalt: z.number().int().optional() })
/** How often one host may have begun its log anew: each time SQLite adds one to the salt, which started at random. */
const MAX_LOG_RESTARTS = 1 << 20
const UINT32 = 2 ** 32

/** Undefined where the home never had a database. What cannot be understood counts as a marker that knows no log. */
export function readMarker(file: string): Marker | undefined {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return {}
  }
}

/** Synced and renamed into place. */
export function writeMarker(file: string, marker: Marker): void {
  writeFileAtomic.sync(file, `${JSON.stringify(marker)}\n`, { mode: 0o600 })
}

/**
 * The first salt in the header of a write-ahead log (SQLite file format, §4.1: bytes 16 to 19), or undefined where there is
 * no log. No lock is lost by reading it: SQLite locks the database and `-shm`, never this file (GU-40).
 */
export function walSalt(database: string): number | undefined {
  const file = `${database}-wal`
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return undefined
  const fd = openSync(file, 'r')
  try {
    const header = Buffer.alloc(32)
    return readSync(fd, header, 0, 32, 0) < 32 ? undefined : header.readUInt32BE(16)
  } finally {
    closeSync(fd)
  }
}

/** Whether a log with this salt can have been written since the marker was. */
export function isOwnLog(marker: Marker, salt: number): boolean {
  return marker.walSalt === undefined || (salt - marker.walSalt + UINT32) % UINT32 <= MAX_LOG_RESTARTS
}

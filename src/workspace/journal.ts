/** What one file change was. Paths are absolute and real. */
export interface ChangeRecord {
  /** Position in its operation, from 0. */
  seq: number
  kind: 'create' | 'modify' | 'delete' | 'move' | 'mkdir'
  path: string
  /** Where a `move` went. */
  to?: string
  /** Permission bits before the change, if something was there. */
  mode?: number
  /** SHA-256 in hex of the content before, for files that existed. */
  beforeSha256?: string
  /** SHA-256 in hex of the content after, for files that exist afterwards. */
  afterSha256?: string
  /** Bytes of earlier content kept in the journal file. */
  size?: number
  /** True where the file was written in place because it has other hard links: recovery puts the earlier content back (FI-06). */
  inPlace?: boolean
}

/** Keeps what was there before a change; one per operation. */
export interface Journal {
  /**
   * Saves the earlier content and returns once it is on disk (file and folder synced); only then may the change begin.
   * @throws KikiError `too_large` or `internal_error` where it cannot be kept; then nothing may be changed.
   */
  record(change: Omit<ChangeRecord, 'seq' | 'size'>, before?: Uint8Array): ChangeRecord
  /** What was recorded so far, in order. */
  records(): readonly ChangeRecord[]
}

/** One journal per operation. */
export declare function createJournal(options: { dir: string; operationId: string }): Journal

/** The records of an operation whose host died; a torn last file is left out: its change never began. */
export declare function readJournal(dir: string, operationId: string): ChangeRecord[]

/** Puts the earlier content back where an in-place write was interrupted. */
export declare function restoreInPlace(dir: string, operationId: string, record: ChangeRecord): void

/** Removes what was kept for an operation whose record is gone. */
export declare function removeJournal(dir: string, operationId: string): void

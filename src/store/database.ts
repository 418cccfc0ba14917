import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { DatabaseError, storeFailure } from './failures.js'
import { isOwnLog, readMarker, walSalt, writeMarker } from './marker.js'
import { applyMigrations, type Migration } from './migrate.js'
import { APPLICATION_ID, problemOf } from './soundness.js'

export type Database = BetterSqlite3.Database
type Statement = BetterSqlite3.Statement

export interface DatabaseFiles {
  database: string
  /** The home's note that it has a database: see `marker.ts`. */
  marker: string
  /** Where space is kept for the ends of operations on a full disk: see `ballast.ts`. */
  ballast?: string
}

/** Longest wait for another process's lock; the event loop stands still meanwhile (GU-41). */
const BUSY_TIMEOUT_MS = 100

/**
 * Opens the home's database: made aside and renamed into place when the home never had one, so that a crash at the first
 * start leaves nothing half made; looked at read-only before anything may write to it (GU-43); migrated in transactions;
 * durable on every commit (GU-07). The home's lock must be held.
 * @throws DatabaseError when the file is not a sound Kiki database, comes from a newer Kiki, or is lost; KikiError `timeout`
 * when another program holds it, `internal_error` when the disk is full.
 */
export function openDatabase(files: DatabaseFiles, migrations: readonly Migration[]): Database {
  const { database: file, marker } = files
  let db: Database | undefined
  try {
    sweepAside(file)
    const known = readMarker(marker)
    if (lstatSync(file, { throwIfNoEntry: false }) === undefined) {
      if (known !== undefined) throw new DatabaseError(file, marker, 'is missing, although this home had one')
      if (walSalt(file) !== undefined) throw new DatabaseError(file, marker, 'is missing, but its -wal is there')
      createAside(file, migrations)
    }
    inspect(files, migrations.length)
    // Until its new salt is known, a log of any salt may be this one's.
    writeMarker(marker, {})
    db = new BetterSqlite3(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
    configure(db)
    applyMigrations(db, migrations)
    writeMarker(marker, { walSalt: beginLog(db, file) })
    return db
  } catch (error) {
    db?.close()
    throw openFailure(files, error)
  }
}

/**
 * Opens a database that is there for reading only, checked as {@link openDatabase} does: for the backup of a home without a
 * host. Nothing is migrated, and no byte is changed. The home's lock must be held.
 * @throws as `openDatabase`.
 */
export function openToRead(files: DatabaseFiles, migrations: readonly Migration[]): Database {
  try {
    inspect(files, migrations.length)
    return new BetterSqlite3(files.database, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  } catch (error) {
    throw openFailure(files, error)
  }
}

/** Every commit reaches the disk: asserted, since reopening a WAL database resets it (GU-07). */
export function setSynchronous(db: Database, level: 'FULL' | 'NORMAL'): void {
  db.pragma(`synchronous = ${level}`)
  const expected = level === 'FULL' ? 2 : 1
  if (db.pragma('synchronous', { simple: true }) !== expected) throw new Error(`SQLite refused synchronous = ${level}`)
}

/** Prepared statements by their text; preparing again costs more than running. */
export function statements(db: Database): (sql: string) => Statement {
  const cache = new Map<string, Statement>()
  return (sql) => {
    let statement = cache.get(sql)
    if (statement === undefined) {
      statement = db.prepare(sql)
      cache.set(sql, statement)
    }
    return statement
  }
}

function configure(db: Database): void {
  db.pragma('journal_mode = WAL')
  db.pragma('foreign_keys = ON')
  db.pragma('wal_autocheckpoint = 4000')
  db.pragma('temp_store = MEMORY')
  if (process.platform === 'darwin') db.pragma('fullfsync = 1')
  setSynchronous(db, 'FULL')
}

/** Makes the log exist by writing what is there already. @returns its salt. */
function beginLog(db: Database, file: string): number | undefined {
  db.pragma(`user_version = ${db.pragma('user_version', { simple: true })}`)
  return walSalt(file)
}

/**
 * Looks at the database on a connection that cannot write: one that can would, when it is closed, carry the log over into
 * the file that is to be left as it is.
 */
function inspect({ database: file, marker }: DatabaseFiles, knownSchema: number): void {
  if (statSync(file).size === 0) throw new DatabaseError(file, marker, 'is empty (zero bytes)')
  const salt = walSalt(file)
  if (salt !== undefined && !isOwnLog(readMarker(marker) ?? {}, salt))
    throw new DatabaseError(
      file,
      marker,
      `has a -wal file beside it that Kiki did not write (if they do belong together, removing ${marker} lets it pass)`,
    )
  const db = new BetterSqlite3(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
  try {
    const problem = problemOf(db, file, knownSchema)
    if (problem !== undefined) throw new DatabaseError(file, marker, problem)
  } finally {
    db.close()
  }
}

function openFailure({ database, marker }: DatabaseFiles, error: unknown): unknown {
  if (error instanceof DatabaseError) return error
  const meant = storeFailure(error)
  if (meant instanceof KikiError) return meant
  if (systemCode(error)?.startsWith('SQLITE_'))
    return new DatabaseError(database, marker, `cannot be read (${messageOf(error)})`)
  return error
}

function createAside(file: string, migrations: readonly Migration[]): void {
  const aside = `${file}.${newId('boot')}${ASIDE}`
  try {
    closeSync(openSync(aside, 'wx', 0o600))
    const db = new BetterSqlite3(aside)
    try {
      db.pragma(`application_id = ${APPLICATION_ID}`)
      // Already here: a crash while the finished file is converted would leave a journal that only a writer can roll back.
      db.pragma('journal_mode = WAL')
      setSynchronous(db, 'FULL')
      applyMigrations(db, migrations)
    } finally {
      db.close()
    }
    syncPath(aside)
    renameSync(aside, file)
    syncPath(dirname(file))
  } catch (error) {
    sweepAside(file)
    throw error
  }
}

const ASIDE = '.new'

/** Removes what first starts that were cut off have left. The lock is held, so nobody is still writing there. */
function sweepAside(file: string): void {
  const prefix = `${basename(file)}.boot_`
  for (const name of readdirSync(dirname(file))) {
    if (name.startsWith(prefix) && name.includes(ASIDE)) rmSync(join(dirname(file), name), { force: true })
  }
}

export function syncPath(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

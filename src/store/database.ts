import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { applyMigrations, type Migration } from './migrate.js'

export type Database = BetterSqlite3.Database
type Statement = BetterSqlite3.Statement

/** `PRAGMA application_id` of Kiki's databases: "KIKI" in ASCII. */
export const APPLICATION_ID = 0x4b494b49
/** Longest wait for another process's lock; the event loop stands still meanwhile (GU-41). */
const BUSY_TIMEOUT_MS = 200
/** Databases up to this size are checked page by page at start; larger ones by reading every table and index once. */
const FULL_CHECK_BYTES = 32 * 1024 * 1024

/** The database cannot be used as it is. Its bytes are untouched; the message says what the owner can do (GU-43). */
export class DatabaseError extends Error {
  constructor(file: string, problem: string) {
    super(
      `The database ${file} ${problem}. Kiki did not start and left the file as it is. ` +
        `To recover: put back a copy made by \`kiki backup\` with \`kiki restore FILE\`, ` +
        'or move the file and its -wal and -shm companions out of the home to begin with an empty one.',
    )
    this.name = 'DatabaseError'
  }
}

/**
 * Opens a database that is there, checked but neither migrated nor set up: for a backup of a home without a host.
 * @throws DatabaseError as {@link openDatabase}.
 */
export function openSound(file: string, migrations: readonly Migration[]): Database {
  return opened(file, migrations, () => {})
}

/**
 * Opens the home's database: made aside and renamed into place when it does not exist yet, so that a crash at the first
 * start leaves nothing half made (GU-43); migrated in transactions; durable on every commit (GU-07).
 * @throws DatabaseError when the file is not a sound Kiki database or comes from a newer Kiki.
 */
export function openDatabase(file: string, migrations: readonly Migration[]): Database {
  if (!existsSync(file)) createAside(file, migrations)
  return opened(file, migrations, (db) => {
    configure(db)
    applyMigrations(db, migrations)
  })
}

function opened(file: string, migrations: readonly Migration[], setUp: (db: Database) => void): Database {
  if (statSync(file).size === 0) throw new DatabaseError(file, 'is empty (zero bytes)')
  let db: Database | undefined
  try {
    db = new BetterSqlite3(file, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS })
    checkSound(db, file, migrations)
    setUp(db)
    return db
  } catch (error) {
    db?.close()
    if (error instanceof DatabaseError) throw error
    throw new DatabaseError(file, `cannot be read (${messageOf(error)})`)
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

function createAside(file: string, migrations: readonly Migration[]): void {
  const aside = `${file}.${newId('boot')}.new`
  try {
    closeSync(openSync(aside, 'wx', 0o600))
    const db = new BetterSqlite3(aside)
    db.pragma(`application_id = ${APPLICATION_ID}`)
    db.pragma('journal_mode = DELETE')
    setSynchronous(db, 'FULL')
    applyMigrations(db, migrations)
    db.close()
    renameSync(aside, file)
    syncFolder(dirname(file))
  } finally {
    rmSync(aside, { force: true })
    rmSync(`${aside}-journal`, { force: true })
  }
}

export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function checkSound(db: Database, file: string, migrations: readonly Migration[]): void {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new DatabaseError(file, 'was not made by Kiki')
  }
  const version = db.pragma('user_version', { simple: true })
  if (typeof version !== 'number' || version > migrations.length) {
    throw new DatabaseError(
      file,
      `was written by a newer Kiki (schema ${version}, this one knows ${migrations.length})`,
    )
  }
  const damage = statSync(file).size <= FULL_CHECK_BYTES ? pageDamage(db) : tableDamage(db)
  if (damage !== undefined) throw new DatabaseError(file, `is damaged (${damage})`)
}

function pageDamage(db: Database): string | undefined {
  const report = db.pragma('quick_check(1)', { simple: true })
  return report === 'ok' ? undefined : String(report)
}

function tableDamage(db: Database): string | undefined {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
  try {
    for (const table of tables) db.prepare(`SELECT * FROM "${table}" LIMIT 1`).get()
    const indexes = db
      .prepare(
        "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND sql NOT LIKE '% WHERE %'",
      )
      .all()
    for (const index of indexes as { name: string; tbl_name: string }[]) {
      db.prepare(`SELECT 1 FROM "${index.tbl_name}" INDEXED BY "${index.name}" LIMIT 1`).get()
    }
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

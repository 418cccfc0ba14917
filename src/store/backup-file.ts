import { closeSync, openSync, readSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { KikiError, messageOf } from '../lib/errors.js'
import { sha256 } from '../lib/json.js'
import type { Database } from './database.js'
import { APPLICATION_ID } from './soundness.js'

/**
 * A backup is one SQLite file: the home's database as SQLite's own online backup copied it, and in two tables more the
 * other files of the home, in chunks with their hashes. So one `integrity_check` covers the whole.
 */
const FORMAT = '1'
/** Bytes of one row. */
export const CHUNK_BYTES = 4 * 1024 * 1024
const HEADER_BYTES = 100

export interface BackupFacts {
  /** RFC 3339. */
  madeAt: string
  /** Of Kiki. */
  version: string
  /** The home that it was made of. */
  home: string
}

/** Turns the copy of a database into a backup; files are added with {@link addChunk}. */
export function beginBackup(db: Database, facts: BackupFacts): void {
  db.exec(`
    CREATE TABLE kiki_backup (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE kiki_backup_files (
      path TEXT NOT NULL, chunk INTEGER NOT NULL, sha256 TEXT NOT NULL, body BLOB NOT NULL,
      PRIMARY KEY (path, chunk)
    ) STRICT;`)
  const insert = db.prepare('INSERT INTO kiki_backup (key, value) VALUES (?, ?)')
  for (const [key, value] of Object.entries({ format: FORMAT, ...facts })) insert.run(key, value)
}

export function addChunk(db: Database, path: string, chunk: number, body: Buffer): void {
  db.prepare('INSERT INTO kiki_backup_files (path, chunk, sha256, body) VALUES (?, ?, ?, ?)').run(
    path,
    chunk,
    sha256(body),
    body,
  )
}

/** The files of a backup, chunk by chunk, in order. @throws KikiError `conflict` where a chunk is damaged. */
export function* chunksOf(db: Database): Generator<{ path: string; chunk: number; body: Buffer }> {
  const rows = db.prepare('SELECT path, chunk, sha256, body FROM kiki_backup_files ORDER BY path, chunk').iterate()
  for (const row of rows as Iterable<{ path: string; chunk: number; sha256: string; body: Buffer }>) {
    if (sha256(row.body) !== row.sha256) throw damaged(db.name, `its file ${row.path} was altered`)
    yield row
  }
}

/** Leaves the database as the host had it. */
export function dropBackupTables(db: Database): void {
  db.exec('DROP TABLE kiki_backup; DROP TABLE kiki_backup_files; VACUUM;')
}

/** Which operations the copied database knows. */
export function knowsOperation(db: Database): (id: string) => boolean {
  const statement = db.prepare('SELECT 1 FROM operations WHERE id = ?')
  return (id) => statement.get(id) !== undefined
}

/**
 * Whether a file is one that `kiki backup` made; tells by its first bytes before SQLite opens it, so that a database in
 * use is never opened. The caller has made sure that the file is none of the home.
 */
export function isBackup(file: string): boolean {
  if (!hasBackupHeader(file)) return false
  const db = new BetterSqlite3(file, { readonly: true, fileMustExist: true })
  try {
    return factsOf(db) !== undefined
  } catch {
    return false // Damaged beyond reading: not known to be one, so it is not replaced.
  } finally {
    db.close()
  }
}

/**
 * Checks a backup before anything of a home is touched: that Kiki made it, that this Kiki knows its schema, and that
 * every page, index and file in it is whole.
 * @param known number of migrations that this Kiki has.
 * @throws KikiError `invalid_arguments` for another kind of file or a newer Kiki's, `conflict` for a damaged one.
 */
export function verifyBackup(file: string, known: number): BackupFacts {
  if (!hasBackupHeader(file)) throw noBackup(file)
  const db = new BetterSqlite3(file, { readonly: true, fileMustExist: true })
  try {
    const facts = factsOf(db)
    if (facts === undefined) throw noBackup(file)
    const schema = Number(db.pragma('user_version', { simple: true }))
    if (facts.format !== FORMAT || schema > known) throw newer(file, `${facts.version}, schema ${schema}`)
    const report = db.pragma('integrity_check(1)', { simple: true })
    if (report !== 'ok') throw damaged(file, String(report))
    for (const _ of chunksOf(db));
    return facts
  } catch (error) {
    if (error instanceof KikiError) throw error
    throw damaged(file, messageOf(error))
  } finally {
    db.close()
  }
}

/** Undefined for a database without a backup's tables. @throws where it cannot be read. */
function factsOf(db: Database): (BackupFacts & { format: string }) | undefined {
  if (db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'kiki_backup'").get() === undefined) return undefined
  const rows = db.prepare('SELECT key, value FROM kiki_backup').all() as { key: string; value: string }[]
  const {
    format = '',
    madeAt = '',
    version = '',
    home = '',
  } = Object.fromEntries(rows.map(({ key, value }) => [key, value])) as Record<string, string | undefined>
  return { format, madeAt, version, home }
}

/** SQLite's file format, §1.3: the magic, a rollback journal (a live home has a WAL), and Kiki's application id. */
function hasBackupHeader(file: string): boolean {
  const header = Buffer.alloc(HEADER_BYTES)
  const fd = openSync(file, 'r')
  try {
    if (readSync(fd, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return false
  } finally {
    closeSync(fd)
  }
  const magic = header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  return magic && header[18] === 1 && header[19] === 1 && header.readUInt32BE(68) === APPLICATION_ID
}

function noBackup(file: string): KikiError {
  return new KikiError('invalid_arguments', `${file} is not a backup that \`kiki backup\` made.`, {
    hint: 'Choose another file; nothing was changed.',
  })
}

function newer(file: string, what: string): KikiError {
  return new KikiError('invalid_arguments', `${file} was made by a newer Kiki (${what}).`, {
    hint: 'Install that version and restore with it; nothing was changed.',
  })
}

function damaged(file: string, what: string): KikiError {
  return new KikiError('conflict', `The backup ${file} is damaged: ${what}.`, {
    hint: 'Use another backup; nothing was changed.',
  })
}

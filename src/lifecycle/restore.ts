import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { recordRestore } from '../audit/restored.js'
import type { HomePaths } from '../config/home.js'
import { prepareHome } from '../config/prepare-home.js'
import type { Clock } from '../lib/clock.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { endRestored } from '../operations/recovery.js'
import { chunksOf, dropBackupTables, verifyBackup } from '../store/backup-file.js'
import { changeTable } from '../store/changes.js'
import { openDatabase, syncPath } from '../store/database.js'
import { claimHome } from '../store/lock.js'
import { writeMarker } from '../store/marker.js'
import { readMigrations } from '../store/migrate.js'
import { operationTable } from '../store/operations.js'
import { createHomeFence } from '../workspace/fence.js'
import { KEPT_FILES, KEPT_FOLDERS, refuseInHome } from './backup.js'

export interface Restored {
  home: string
  /** When the backup was made, of which home, by which Kiki. */
  backup: { made_at: string; home: string; version: string }
  /** Where what was there before is kept; null where nothing was. */
  kept: string | null
  /** Operations that were unfinished when the backup was made; they do not run again. */
  unfinished: number
  /** What of them could not be read; it is not among the recorded changes. */
  warnings: string[]
}

/** Names of a backup's files; anything else in one is refused, so that none leads out of the home. */
const FILE_NAME = /^(config\.toml|mcp\.json|owner\.token|(keys|media|changes)(\/[A-Za-z0-9_-][A-Za-z0-9._-]*){1,8})$/

/**
 * Puts a backup in a home's place (GU-40, GU-43): checked first, prepared aside, then swapped; what was there is kept in
 * a folder of the home. From the first move to the last the home has no database but the mark of one, so that a crash in
 * between leaves a home that no host starts on, and that the same command mends.
 * @param home made where it is missing.
 * @throws KikiError `conflict` where a host runs on the home or the backup is damaged, `invalid_arguments` where the file
 * is no backup or of a newer Kiki, `not_found`.
 */
export function restoreHome(options: { home: string; file: string; clock: Clock }): Restored {
  const file = backupAt(options.file)
  if (existsSync(options.home)) refuseInHome(createHomeFence(realpathSync(options.home)), file)
  const facts = verifyBackup(file, readMigrations().length)
  const paths = prepareHome(options.home)
  const unlock = claimHome(paths)
  const staged = join(paths.dir, `${STAGED}${newId('boot').slice(-12)}`)
  try {
    sweepStaged(paths.dir)
    mkdirSync(staged, { mode: 0o700 })
    const warnings: string[] = []
    const noted = { replaced: paths.keys, madeAt: facts.madeAt }
    const unfinished = prepare(file, staged, { clock: options.clock, warnings, ...noted })
    const kept = swap(paths, staged, options.clock)
    return {
      home: paths.dir,
      backup: { made_at: facts.madeAt, home: facts.home, version: facts.version },
      kept,
      unfinished,
      warnings,
    }
  } finally {
    rmSync(staged, { recursive: true, force: true })
    unlock()
  }
}

const STAGED = 'restore-'

/** Removes what killed restores have prepared. The lock is held, so nobody is still at it. */
function sweepStaged(home: string): void {
  for (const name of readdirSync(home)) {
    if (name.startsWith(STAGED)) rmSync(join(home, name), { recursive: true, force: true })
  }
}

function backupAt(given: string): string {
  const path = resolve(given)
  if (!existsSync(path) || !statSync(path).isFile()) {
    throw new KikiError('not_found', `There is no file ${path}.`, { hint: 'Name the file that `kiki backup` made.' })
  }
  return realpathSync(path)
}

/** Makes the home's database and files in a folder aside, synced. */
function prepare(
  file: string,
  staged: string,
  { clock, warnings, ...noted }: { clock: Clock; warnings: string[]; replaced: string; madeAt: string },
): number {
  const database = join(staged, 'kiki.db')
  copyFileSync(file, database, constants.COPYFILE_EXCL)
  chmodSync(database, 0o600)
  for (const folder of KEPT_FOLDERS) mkdirSync(join(staged, folder), { mode: 0o700 })
  const db = openDatabase({ database, marker: join(staged, 'marker') }, readMigrations())
  try {
    for (const { path, chunk, body } of chunksOf(db)) writeChunk(staged, path, chunk, body)
    dropBackupTables(db)
    const operations = operationTable(db)
    const log = {
      error: (facts: object, message: string) => void warnings.push(`${message}: ${JSON.stringify(facts)}`),
    }
    const end = () =>
      endRestored({ operations, changes: changeTable(db) }, { changesFolder: join(staged, 'changes'), clock, log })
    const ended = db.transaction(end).immediate()
    recordRestore(db, { staged, clock, ...noted })
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.pragma('journal_mode = DELETE')
    return ended
  } finally {
    db.close()
  }
}

function writeChunk(staged: string, path: string, chunk: number, body: Buffer): void {
  if (!FILE_NAME.test(path) || path.includes('..')) {
    throw new KikiError('conflict', `The backup holds a file that is none of Kiki's: ${JSON.stringify(path)}.`, {
      hint: 'Use another backup; nothing was changed.',
    })
  }
  const goal = join(staged, path)
  mkdirSync(dirname(goal), { recursive: true, mode: 0o700 })
  writeFileSync(goal, body, { flag: chunk === 0 ? 'wx' : 'a', mode: 0o600, flush: true })
}

/** Moves what is there into a folder of its own, and what was prepared into its place; the database goes first and comes last. */
function swap(paths: HomePaths, staged: string, clock: Clock): string | null {
  const stamp = new Date(clock.now()).toISOString().replace(/[:.]/g, '-')
  const kept = join(paths.dir, `before-restore-${stamp}-${newId('boot').slice(-6)}`)
  // While this mark stands without a database, no host makes an empty one.
  writeMarker(join(paths.keys, MARK), {})
  syncPath(paths.keys)
  try {
    exchange(paths, staged, kept)
  } catch (error) {
    throw new KikiError('internal_error', `The restore stopped half-way: ${messageOf(error)}.`, {
      hint: `Mend the cause and repeat it; until then no host starts here. What was there before is in ${kept}.`,
      cause: error,
    })
  }
  return existsSync(kept) ? kept : null
}

function exchange(paths: HomePaths, staged: string, kept: string): void {
  const put = (path: string) => {
    mkdirSync(dirname(join(kept, path)), { recursive: true, mode: 0o700 })
    renameSync(join(paths.dir, path), join(kept, path))
  }
  for (const name of ['kiki.db', 'kiki.db-wal', 'kiki.db-shm']) if (isThere(join(paths.dir, name))) put(name)
  syncPath(paths.dir)
  for (const path of replaceable(paths.dir)) put(path)
  for (const path of replaceable(staged)) {
    mkdirSync(dirname(join(paths.dir, path)), { recursive: true, mode: 0o700 })
    renameSync(join(staged, path), join(paths.dir, path))
  }
  for (const folder of KEPT_FOLDERS) syncPath(join(paths.dir, folder))
  syncPath(paths.dir)
  renameSync(join(staged, basename(paths.database)), paths.database)
  syncPath(paths.dir)
}

/** The mark that a home had a database. */
const MARK = 'database'

/** What a restore exchanges beside the database: files, and whatever is in the folders, but for the mark. */
function replaceable(root: string): string[] {
  const inside = KEPT_FOLDERS.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`))
  return [...KEPT_FILES, ...inside].filter((path) => path !== `keys/${MARK}` && isThere(join(root, path)))
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

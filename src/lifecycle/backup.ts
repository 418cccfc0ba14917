import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import type { HomePaths } from '../config/home.js'
import type { Clock } from '../lib/clock.js'
import { KikiError, systemCode } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { readVersion } from '../lib/version.js'
import { addChunk, beginBackup, CHUNK_BYTES, isBackup, knowsOperation } from '../store/backup-file.js'
import { type Database, syncPath } from '../store/database.js'
import type { HomeFence } from '../workspace/fence.js'

export interface BackupDone {
  file: string
  /** Bytes. */
  size: number
  made_at: string
  /** Files of the home beside its database. */
  files: number
}

export interface BackupDeps {
  /** Opened by this process, the only one that may (GU-40). */
  db: Database
  paths: HomePaths
  fence: HomeFence
  clock: Clock
}

/**
 * What a home is made of beside its database: settings, keys and the owner's token (so that clients and scripts that know
 * this Kiki go on), earlier content of changed files (for undo), saved media. Not: logs, sockets, locks.
 */
export const KEPT_FILES = ['config.toml', 'mcp.json', 'owner.token'] as const
export const KEPT_FOLDERS = ['keys', 'media', 'changes'] as const

/** Pages of the database that are copied between two turns of the event loop. */
const PAGES = 256

/**
 * Writes a backup of the home into one file of mode 0600, aside and renamed, while the host goes on (GU-40). The database
 * is copied by SQLite's online backup; its own file is never opened by other means, which would drop its locks.
 * @param file absolute path; an earlier backup there is replaced, anything else is refused.
 * @throws KikiError `invalid_arguments`, `path_denied` for a place in the home, `conflict`, `not_found`.
 */
export async function backupHome(deps: BackupDeps, file: string): Promise<BackupDone> {
  const target = targetOf(deps.fence, file)
  const aside = `${target}.${newId('boot').slice(-12)}.tmp`
  try {
    closeSync(openSync(aside, 'wx', 0o600))
    await deps.db.backup(aside, { progress: () => PAGES })
    const madeAt = new Date(deps.clock.now()).toISOString()
    const files = await addHome(deps, aside, madeAt)
    syncFile(aside)
    renameSync(aside, target)
    syncPath(dirname(target))
    return { file: target, size: statSync(target).size, made_at: madeAt, files }
  } catch (error) {
    throw writeError(error, target)
  } finally {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${aside}${end}`, { force: true })
  }
}

/** The real place of the backup. What stands there is known not to belong to the home before it is opened (FC-O07). */
function targetOf(fence: HomeFence, file: string): string {
  const folder = dirname(resolve(file))
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new KikiError('not_found', `There is no folder ${folder} for the backup.`, { hint: 'Make it first.' })
  }
  const target = join(realpathSync(folder), basename(file))
  refuseInHome(fence, target)
  const there = lstatSync(target, { bigint: true, throwIfNoEntry: false })
  if (there === undefined) return target
  if (!there.isFile() || fence.holds(there) || !isBackup(target)) {
    throw new KikiError('conflict', `${target} is there already and is no backup of Kiki.`, {
      hint: 'Choose another name; only an earlier backup is replaced.',
    })
  }
  return target
}

/** @throws KikiError `path_denied` where a backup would stand in the home. */
export function refuseInHome(fence: HomeFence, file: string): void {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (fence.isHome(statSync(folder, { bigint: true }))) {
      throw new KikiError('path_denied', `${file} lies in Kiki's home, which is what a backup is of.`, {
        hint: 'Keep backups outside the home, best on another disk.',
      })
    }
    if (folder === dirname(folder)) return
  }
}

/** Adds the home's other files to the copied database, which is nobody's else. */
async function addHome({ paths }: BackupDeps, aside: string, madeAt: string): Promise<number> {
  const db = new BetterSqlite3(aside, { fileMustExist: true })
  try {
    db.pragma('journal_mode = DELETE')
    // Nobody reads it before it is whole, and then it is synced once.
    db.pragma('journal_mode = MEMORY')
    db.pragma('synchronous = OFF')
    beginBackup(db, { madeAt, version: readVersion(), home: paths.dir })
    const known = knowsOperation(db)
    let count = 0
    for (const path of keptPaths(paths.dir)) {
      if (path.startsWith('changes/') && !known(basename(path).replace(/\.\d+$/, ''))) continue
      if (await addFile(db, paths.dir, path)) count += 1
    }
    return count
  } finally {
    db.close()
  }
}

function keptPaths(home: string): string[] {
  const below = (folder: string): string[] =>
    readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) return below(path)
      return entry.isFile() ? [path] : []
    })
  const files = KEPT_FILES.filter((name) => isOwnFile(home, join(home, name)))
  return [...files, ...KEPT_FOLDERS.filter((name) => existsSync(join(home, name))).flatMap(below)]
}

/** A regular file, or a link to one outside the home: a settings file may lie among the owner's dotfiles. */
function isOwnFile(home: string, path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink() !== true) return stat?.isFile() === true
  return existsSync(path) && !realpathSync(path).startsWith(`${home}/`) && statSync(path).isFile()
}

/** False where retention has removed the file meanwhile: then its operation's content is not kept any more either. */
async function addFile(db: Database, home: string, path: string): Promise<boolean> {
  let fd: number
  try {
    fd = openSync(join(home, path), 'r')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
  try {
    for (let chunk = 0; ; chunk += 1) {
      const body = Buffer.allocUnsafe(CHUNK_BYTES)
      const length = readSync(fd, body, 0, CHUNK_BYTES, chunk * CHUNK_BYTES)
      if (length === 0 && chunk > 0) return true
      addChunk(db, path, chunk, body.subarray(0, length))
      await setImmediate()
      if (length < CHUNK_BYTES) return true
    }
  } finally {
    closeSync(fd)
  }
}

function syncFile(path: string): void {
  const fd = openSync(path, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function writeError(error: unknown, target: string): unknown {
  if (error instanceof KikiError) return error
  const code = systemCode(error)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new KikiError('permission_denied', `The backup ${target} cannot be written here.`, {
      hint: 'Choose a folder that you may write to.',
      cause: error,
    })
  }
  if (code === 'ENOSPC' || code === 'SQLITE_FULL') {
    return new KikiError('internal_error', `The disk of ${target} is full; no backup was made.`, {
      hint: 'Free some space, or choose another disk.',
      cause: error,
    })
  }
  return error
}

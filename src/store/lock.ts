import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { type HomePaths, homeCommand } from '../config/home.js'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'

/**
 * Two hosts that start at once both hold a shared lock for an instant, and each keeps the other from the exclusive one: without
 * a wait both could lose. One whose home is taken finds out this much later, in milliseconds.
 */
const CONTEST_MS = 150

/**
 * Takes the home's exclusive lock: a transaction held open on a separate lock database (GU-40). `kill -9` frees it.
 * Nothing in this process may open the file by other means: closing it would drop the lock (POSIX).
 * @returns the release function, or undefined when another host holds it.
 * @throws KikiError `conflict` where the file cannot be used as a lock.
 */
export function takeLock(file: string): (() => void) | undefined {
  let db: BetterSqlite3.Database | undefined
  try {
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
    const opened = new BetterSqlite3(file, { timeout: CONTEST_MS })
    db = opened
    opened.pragma('journal_mode = DELETE')
    opened.exec('BEGIN EXCLUSIVE')
    return () => opened.close()
  } catch (error) {
    db?.close()
    if (systemCode(error)?.startsWith('SQLITE_BUSY')) return undefined
    throw new KikiError('conflict', `The lock file ${file} cannot be used (${messageOf(error)}).`, {
      hint: 'It holds no data: see that no Kiki host runs on this home, remove it, and start again.',
      cause: error,
    })
  }
}

/**
 * Makes this process the one host of a home, and says so in `run/host.pid` (GU-40). `host.json` of a host that died is
 * removed, with the sockets of its children; the new one writes its own once it is ready.
 * @returns gives the home free.
 * @throws KikiError `conflict` naming home and pid when another host has it.
 */
export function claimHome(paths: HomePaths): () => void {
  const unlock = takeLock(paths.lock)
  const pidFile = join(paths.run, 'host.pid')
  if (unlock === undefined) throw alreadyRunning(paths.dir, readPid(pidFile))
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 })
    rmSync(paths.hostFile, { force: true })
    sweepRun(paths.run)
  } catch (error) {
    unlock()
    throw new KikiError('conflict', `The home ${paths.dir} cannot be written (${messageOf(error)}).`, {
      hint: 'See that its disk is not full and that only Kiki has made what stands there, then start again.',
      cause: error,
    })
  }
  return () => {
    rmSync(pidFile, { force: true })
    unlock()
  }
}

/** Removes the sockets of a killed host's launchers, which ended with it. */
function sweepRun(run: string): void {
  for (const name of readdirSync(run)) {
    if (name.startsWith('run-')) rmSync(join(run, name), { recursive: true, force: true })
  }
}

function alreadyRunning(home: string, pid: number | undefined): KikiError {
  const who = pid === undefined ? 'another process' : `pid ${pid}`
  return new KikiError('conflict', `A Kiki host already runs on the home ${home} (${who}).`, {
    hint: `Use it (${homeCommand(home, 'status')}), or end it with ${homeCommand(home, 'stop')}.`,
    data: { home, ...(pid === undefined ? {} : { pid }) },
  })
}

/** Undefined where nothing is known for certain: the other host took the lock this instant and writes the file next. */
function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8'))
    if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
    // One that is gone did not take the lock; its host was killed and left the file.
    process.kill(pid, 0)
    return pid
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EISDIR'].includes(systemCode(error) ?? '')) return undefined
    throw error
  }
}

import { closeSync, existsSync, openSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
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

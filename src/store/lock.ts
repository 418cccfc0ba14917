import { closeSync, existsSync, openSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { systemCode } from '../lib/errors.js'

/**
 * Takes the home's exclusive lock: a transaction held open on a separate lock database (GU-40). `kill -9` frees it.
 * Nothing in this process may open the file by other means: closing it would drop the lock (POSIX).
 * @returns the release function, or undefined when another host holds it.
 */
export function takeLock(file: string): (() => void) | undefined {
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
  const db = new BetterSqlite3(file, { timeout: 0 })
  try {
    db.pragma('journal_mode = DELETE')
    db.exec('BEGIN EXCLUSIVE')
    return () => db.close()
  } catch (error) {
    db.close()
    if (systemCode(error)?.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
}

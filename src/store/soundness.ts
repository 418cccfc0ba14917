import { statSync } from 'node:fs'
import { messageOf } from '../lib/errors.js'
import type { Database } from './database.js'

/** `PRAGMA application_id` of Kiki's databases: "KIKI" in ASCII. */
export const APPLICATION_ID = 0x4b494b49
/** Databases up to this size are checked page by page at start; larger ones by reading every table and index once. */
const FULL_CHECK_BYTES = 32 * 1024 * 1024

/** Why this is no database that Kiki can use, or undefined. Reads only. */
export function problemOf(db: Database, file: string, knownSchema: number): string | undefined {
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) return 'was not made by Kiki'
  const schema = db.pragma('user_version', { simple: true })
  if (typeof schema !== 'number' || schema > knownSchema)
    return `was written by a newer Kiki (schema ${schema}, this one knows ${knownSchema})`
  const damage = damageOf(db, file)
  return damage === undefined ? undefined : `is damaged (${damage})`
}

/** The first damage that is found, as thoroughly as the size allows. Reads only. */
export function damageOf(db: Database, file: string): string | undefined {
  return statSync(file).size <= FULL_CHECK_BYTES ? pageDamage(db) : tableDamage(db)
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

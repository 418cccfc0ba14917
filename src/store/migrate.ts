import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from './database.js'

export interface Migration {
  name: string
  sql: string
}

/** The SQL files of `migrations/`, in order of their names; the package holds them beside `dist/`. */
export function readMigrations(folder = fileURLToPath(new URL('../../migrations', import.meta.url))): Migration[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, sql: readFileSync(join(folder, name), 'utf8') }))
}

/** Runs what this database has not seen yet, each file in a transaction of its own; `user_version` counts them. */
export function applyMigrations(db: Database, migrations: readonly Migration[]): void {
  const done = Number(db.pragma('user_version', { simple: true }))
  migrations.slice(done).forEach((migration, index) => {
    db.transaction(() => {
      db.exec(migration.sql)
      db.pragma(`user_version = ${done + index + 1}`)
    }).immediate()
  })
}

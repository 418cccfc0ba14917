import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/database.js'
import { DatabaseError } from '../../src/store/failures.js'
import { readMigrations } from '../../src/store/migrate.js'
import { ENDING, operation, storeHome } from './home.js'
import { startLocker } from './locker.js'

const STORE = new URL('../../dist/store/store.js', import.meta.url).href

let home: ReturnType<typeof storeHome>
beforeEach(() => {
  home = storeHome()
})
afterEach(() => home.remove())

/** Runs `job` on the store in another process, which is then killed: what it wrote is in the log only. */
function killedAfter(job: string, target = home): void {
  const script = `
    const { openStore } = await import(${JSON.stringify(STORE)})
    const { db } = openStore(${JSON.stringify(target.files)}, () => {})
    ${job}
    process.kill(process.pid, 'SIGKILL')`
  expect(spawnSync(process.execPath, ['--input-type=module', '-e', script]).signal).toBe('SIGKILL')
}

const leaveLog = (target = home) =>
  killedAfter(`for (let i = 0; i < 20; i++) db.exec("INSERT INTO meta VALUES ('row " + i + "', 'x')")`, target)

/** Opens the store, which must refuse, say how to go on, and leave every byte as it was. */
function refused(): string {
  const before = home.hashes()
  const names = readdirSync(home.dir).filter((name) => !/-(wal|shm)$/.test(name))
  let message = ''
  try {
    home.open().close()
  } catch (error) {
    expect(error).toBeInstanceOf(DatabaseError)
    message = (error as Error).message
  }
  expect(message).toContain(home.files.database)
  expect(message).toContain('kiki restore')
  expect(home.hashes()).toEqual(before)
  expect(readdirSync(home.dir).filter((name) => !/-(wal|shm)$/.test(name))).toEqual(names)
  return message
}

function overwrite(file: string, at: number, bytes: Buffer): void {
  writeSync(openSync(file, 'r+'), bytes, 0, bytes.length, at)
}

describe('openDatabase', () => {
  it('GU-07 every open is a WAL database whose commits are synced, also after another program reset that', () => {
    for (let round = 0; round < 3; round++) {
      const store = home.open()
      expect(store.db.pragma('journal_mode', { simple: true })).toBe('wal')
      expect(store.db.pragma('synchronous', { simple: true })).toBe(2)
      expect(store.db.pragma('foreign_keys', { simple: true })).toBe(1)
      expect(store.db.pragma('busy_timeout', { simple: true })).toBeLessThanOrEqual(250)
      store.close()
      const other = new BetterSqlite3(home.files.database)
      other.pragma('synchronous = OFF')
      if (round === 1) other.pragma('journal_mode = DELETE')
      other.close()
    }
  })

  it('GU-60 the database and what SQLite puts beside it are the owner’s alone', () => {
    const before = process.umask(0)
    try {
      const store = home.open()
      for (const name of readdirSync(home.dir, { recursive: true, encoding: 'utf8' })) {
        const stat = lstatSync(join(home.dir, name))
        if (stat.isFile()) expect([name, stat.mode & 0o777]).toEqual([name, 0o600])
      }
      expect(existsSync(`${home.files.database}-wal`)).toBe(true)
      store.close()
    } finally {
      process.umask(before)
    }
  })

  it('GU-43 what a first start that was cut off has left aside is removed, and nothing else', () => {
    for (const name of ['kiki.db.boot_1.new', 'kiki.db.boot_1.new-wal', 'kiki.db.bak', 'kiki.db.boot_notes'])
      writeFileSync(join(home.dir, name), 'x')
    home.open().close()
    expect(readdirSync(home.dir).sort()).toEqual(['keys', 'kiki.db', 'kiki.db.bak', 'kiki.db.boot_notes'])
  })

  it('what a killed host committed is there again', () => {
    home.open().close()
    leaveLog()
    const store = home.open()
    expect(store.db.prepare("SELECT count(*) FROM meta WHERE key LIKE 'row %'").pluck().get()).toBe(20)
    store.close()
  })
})

describe('GU-43 a database that cannot be used is refused, its bytes and its log left as they are', () => {
  beforeEach(() => {
    home.open().close()
    leaveLog()
  })

  it.each([
    ['zeros', Buffer.alloc(4096)],
    ['ones', Buffer.alloc(4096, 0xff)],
    ['text', Buffer.alloc(4096, 'kiki ')],
  ])('GU-43 bytes 4096–8192 overwritten by %s', (_, bytes) => {
    rmSync(`${home.files.database}-wal`)
    overwrite(home.files.database, 4096, bytes)
    expect(refused()).toContain('damaged')
  })

  it('GU-43 no SQLite file at all', () => {
    rmSync(`${home.files.database}-wal`)
    writeFileSync(home.files.database, 'not a database, but something of the owner’s '.repeat(200))
    expect(refused()).toContain('not a database')
  })

  it('GU-43 zero bytes, with and without its log', () => {
    truncateSync(home.files.database)
    expect(refused()).toContain('zero bytes')
    rmSync(`${home.files.database}-wal`)
    expect(refused()).toContain('zero bytes')
  })

  it('GU-43 cut off in the middle', () => {
    rmSync(`${home.files.database}-wal`)
    truncateSync(home.files.database, 40_000)
    expect(refused()).toContain('malformed')
  })

  it('GU-43 another program’s database, in either journal mode', () => {
    rmSync(`${home.files.database}-wal`)
    for (const mode of ['DELETE', 'WAL']) {
      rmSync(home.files.database)
      const other = new BetterSqlite3(home.files.database)
      other.pragma(`journal_mode = ${mode}`)
      other.exec('CREATE TABLE notes (text)')
      other.close()
      expect(refused()).toContain('not made by Kiki')
    }
  })

  it('GU-43 one of a newer Kiki whose log is not carried over yet', () => {
    killedAfter('db.pragma("user_version = 99")')
    expect(refused()).toContain('newer Kiki (schema 99')
  })

  it('GU-43 the log of another Kiki database beside it', () => {
    const other = storeHome()
    try {
      other.open().close()
      leaveLog(other)
      copyFileSync(`${other.files.database}-wal`, `${home.files.database}-wal`)
      const message = refused()
      expect(message).toContain('Kiki did not write')
      rmSync(`${home.files.database}-wal`)
      home.open().close()
      copyFileSync(`${other.files.database}-wal`, `${home.files.database}-wal`)
      expect(refused()).toBe(message)
    } finally {
      other.remove()
    }
  })

  it('GU-43 missing, though the home had one: never replaced by an empty one, nor joined to the old log', () => {
    renameSync(home.files.database, join(home.dir, 'moved'))
    expect(refused()).toContain('is missing, although this home had one')
    rmSync(home.files.marker)
    expect(refused()).toContain('its -wal is there')
    expect(existsSync(home.files.database)).toBe(false)
  })

  it('GU-43 a link to a disk that is not there is a missing database', () => {
    renameSync(home.files.database, join(home.dir, 'moved'))
    rmSync(home.files.marker)
    symlinkSync(join(home.dir, 'away', 'kiki.db'), home.files.database)
    expect(() => home.open()).toThrow()
    expect(lstatSync(home.files.database).isSymbolicLink()).toBe(true)
  })

  it('GU-43 following the printed steps begins anew', () => {
    overwrite(home.files.database, 5 * 4096, Buffer.alloc(60_000, 1))
    const paths =
      refused()
        .match(/move (.+), as far/)?.[1]
        ?.split(/, | and /) ?? []
    expect(paths).toHaveLength(4)
    mkdirSync(join(home.dir, 'aside'))
    for (const path of paths) if (existsSync(path)) renameSync(path, join(home.dir, 'aside', path.replaceAll('/', '_')))
    const store = home.open()
    expect(store.db.prepare('SELECT count(*) FROM meta').pluck().get()).toBe(0)
    store.close()
  })
})

it('GU-43 a home that was copied while its host was dead opens with its log; so does one whose log began anew', () => {
  const store = home.open()
  store.db.pragma('wal_autocheckpoint = 1')
  for (let i = 0; i < 50; i++) {
    store.db.prepare('INSERT INTO meta VALUES (?, ?)').run(`k${i}`, 'v')
    store.db.pragma('wal_checkpoint(RESTART)')
  }
  store.db.prepare("INSERT INTO meta VALUES ('last', 'v')").run()
  const copy = storeHome()
  try {
    for (const name of ['kiki.db', 'kiki.db-wal', 'keys/database'])
      copyFileSync(join(home.dir, name), join(copy.dir, name))
    store.close()
    const opened = copy.open()
    expect(opened.db.prepare('SELECT count(*) FROM meta').pluck().get()).toBe(51)
    opened.close()
  } finally {
    copy.remove()
  }
})

it('GU-41 a database that another program is writing to cannot be opened now, and that is all that is said', async () => {
  home.open().close()
  const locker = await startLocker(home.files.database)
  try {
    expect(() => home.open()).toThrow('Another program holds')
  } finally {
    await locker.release()
  }
  home.open().close()
})

describe('migrations', () => {
  const good = { name: '0002-good.sql', sql: 'CREATE TABLE extra (a)' }
  const bad = {
    name: '0003-bad.sql',
    sql: 'CREATE TABLE half (a); INSERT INTO half VALUES (1); INSERT INTO nowhere VALUES (1);',
  }

  it('GU-43 one that fails leaves no trace; those before it stand, and the mended one goes on there', () => {
    home.open().close()
    const known = readMigrations()
    expect(() => openDatabase(home.files, [...known, good, bad])).toThrow('nowhere')
    const after = openDatabase(home.files, [...known, good])
    const tables = after.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
    expect(tables).toContain('extra')
    expect(tables).not.toContain('half')
    expect(after.pragma('user_version', { simple: true })).toBe(known.length + 1)
    after.close()
    const mended = openDatabase(home.files, [...known, good, { ...bad, sql: 'CREATE TABLE half (a)' }])
    expect(mended.pragma('user_version', { simple: true })).toBe(known.length + 2)
    mended.close()
  })

  it('GU-43 at the first start one that fails leaves no database, so the next start is a first one again', () => {
    expect(() => openDatabase(home.files, [...readMigrations(), bad])).toThrow('nowhere')
    expect(readdirSync(home.dir)).toEqual(['keys'])
    home.open().close()
  })

  it('run once each, in the order of their names', () => {
    expect(readMigrations().map(({ name }) => name)).toEqual(
      [...readMigrations().map(({ name }) => name)].sort((a, b) => (a < b ? -1 : 1)),
    )
    home.open().close()
    const before = readFileSync(home.files.database)
    home.open().close()
    expect(readFileSync(home.files.database).length).toBe(before.length)
  })
})

it('GU-04 a finished row never changes, whoever asks', () => {
  const store = home.open()
  try {
    for (const [index, status] of (['completed', 'failed', 'cancelled', 'outcome_unknown'] as const).entries()) {
      const id = `op_${index}`
      store.operations.insert(operation(id))
      expect(store.operations.end(id, { ...ENDING, status })).toBe(true)
      expect(store.operations.end(id, { ...ENDING, status: 'failed', error_code: 'internal_error' })).toBe(false)
      expect(store.operations.start(id, 'boot', 3)).toBe(false)
      for (const change of ["status = 'running'", "result = 'x'", "tool = 'Other'", 'ended_at = 9'])
        expect(() => store.db.prepare(`UPDATE operations SET ${change} WHERE id = ?`).run(id)).toThrow('never changes')
      expect(store.operations.get(id)).toMatchObject({ status, result: '{}', tool: 'Write', ended_at: 2 })
    }
  } finally {
    store.close()
  }
})

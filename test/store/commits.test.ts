import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../src/lib/async.js'
import { KikiError } from '../../src/lib/errors.js'
import { openStore, type Store } from '../../src/store/store.js'
import { storeHome } from './home.js'
import { startLocker } from './locker.js'

const root = process.getuid?.() === 0
const strace = spawnSync('strace', ['-V']).status === 0
if (!strace) console.warn('strace is missing: syncs are not counted')

let home: ReturnType<typeof storeHome>
let store: Store
let lost: unknown[]
beforeEach(() => {
  home = storeHome()
  lost = []
  store = openStore(home.files, (error) => lost.push(error))
})
afterEach(() => {
  store.close()
  home.remove()
})

const put = (key: string, value = 'x') => {
  store.db.prepare('INSERT INTO meta VALUES (?, ?)').run(key, value)
  return key
}
const keys = () => store.db.prepare('SELECT key FROM meta ORDER BY rowid').pluck().all()
const fails = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('commits', () => {
  it('a job that throws is undone alone, whatever it wrote before; its neighbours stand', async () => {
    const results = await Promise.allSettled([
      store.commits.durable(() => put('a')),
      store.commits.durable(() => {
        put('half')
        throw new KikiError('conflict', 'no')
      }),
      store.commits.quick(() => put('b')),
      store.commits.durable(() => put('a')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
    expect(results[1]).toMatchObject({ reason: { code: 'conflict', message: 'no' } })
    expect(keys()).toEqual(['a', 'b'])
  })

  it('a job has its value only once it is committed; the order of calls is the order of commits', async () => {
    const other = openOther()
    const seen: unknown[] = []
    const first = store.commits.durable(() => put('1')).then(() => seen.push(other.count()))
    store.commits.lazy(() => put('2'))
    const third = store.commits.quick(() => put('3'))
    expect(other.count()).toBe(0)
    await Promise.all([first, third])
    expect(seen).toEqual([3])
    expect(keys()).toEqual(['1', '2', '3'])
  })

  it('GU-08 records of reads are written soon by themselves, at once when there are many, and before closing', async () => {
    store.commits.lazy(() => put('soon'))
    expect(keys()).toEqual([])
    await store.commits.durable(() => undefined)
    expect(keys()).toEqual(['soon'])
    store.commits.lazy(() => put('by itself'))
    const { promise, resolve } = deferred<void>()
    const looking = setInterval(() => keys().length === 2 && resolve(), 5)
    await promise
    clearInterval(looking)
    for (let i = 0; i < 10; i++) store.commits.lazy(() => put(`last ${i}`))
    store.close()
    store = openStore(home.files, (error) => lost.push(error))
    expect(keys()).toHaveLength(12)
  })

  it('GU-08 a read whose record fails is told to the log, and costs nobody else anything', async () => {
    store.commits.lazy(() => {
      throw new Error('bad record')
    })
    await store.commits.durable(() => put('a'))
    expect(lost).toEqual([new Error('bad record')])
    expect(keys()).toEqual(['a'])
  })

  it('GU-07 after a commit without a sync, the next ones are synced again', async () => {
    await store.commits.quick(() => put('a'))
    expect(store.db.pragma('synchronous', { simple: true })).toBe(2)
    store.commits.lazy(() => put('b'))
    store.commits.flush()
    expect(store.db.pragma('synchronous', { simple: true })).toBe(2)
  })
})

/** A second look at the database, as another process would have it. */
function openOther() {
  const script = `process.stdout.write(String(new (require('better-sqlite3'))(${JSON.stringify(home.files.database)},
    { readonly: true }).prepare('SELECT count(*) FROM meta').pluck().get()))`
  return { count: () => Number(execFileSync(process.execPath, ['-e', script])) }
}

it.skipIf(!strace)('GU-07 GU-08 the disk is synced once a group of side effects, and never for reads alone', () => {
  const place = storeHome()
  try {
    const trace = join(place.dir, 'trace')
    const program = fileURLToPath(new URL('../fixtures/commit-steps.mjs', import.meta.url))
    const module = new URL('../../dist/store/store.js', import.meta.url).href
    const args = ['-f', '-y', '-e', 'trace=fsync,fdatasync,write', '-o', trace, process.execPath, program, module]
    spawnSync('strace', [...args, place.files.database, place.files.marker])
    const syncs: Record<string, number> = {}
    let step = ''
    for (const line of readFileSync(trace, 'utf8').split('\n')) {
      step = /write\(1<.*"mark:(\w+)/.exec(line)?.[1] ?? step
      if (step !== '') syncs[step] ??= 0
      if (step !== '' && /f(data)?sync\(\d+<.*kiki\.db-wal>/.test(line)) syncs[step] = (syncs[step] ?? 0) + 1
    }
    expect(syncs).toEqual({ one: 1, group: 1, quick: 0, lazy: 0, mixed: 1, again: 1, end: 0 })
  } finally {
    place.remove()
  }
})

describe('GU-41 a database that another program is writing to', () => {
  it('GU-41 is a retryable refusal without effect, never freezes for longer than 250 ms, and passes', async () => {
    const locker = await startLocker(home.files.database)
    const freezes: number[] = []
    let reads = 0
    for (let i = 0; i < 4; i++) {
      const refused = fails(store.commits.durable(() => put(`busy ${i}`)))
      const from = performance.now()
      store.commits.flush()
      freezes.push(performance.now() - from)
      expect(await refused).toMatchObject({
        code: 'timeout',
        data: { retryable: true },
        hint: expect.stringContaining('again'),
      })
      reads += keys().length
    }
    // Each attempt waits as long as it may; what a busy machine adds differs from one to the next.
    expect(Math.min(...freezes)).toBeLessThan(250)
    expect(reads).toBe(0)
    await locker.release()
    expect(await store.commits.durable(() => put('after'))).toBe('after')
    expect(keys()).toEqual(['after'])
  })

  it('GU-41 one that lets go within the wait costs nobody an error', async () => {
    const locker = await startLocker(home.files.database)
    const released = locker.release()
    expect(await store.commits.durable(() => put('waited'))).toBe('waited')
    await released
  })
})

describe('GU-42 a full disk', () => {
  it.skipIf(!root)(
    'GU-42 refuses what cannot be recorded, keeps what was, and goes on once there is space',
    async () => {
      const disk = join(home.dir, 'disk')
      mkdirSync(disk)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
      const full = openStore({ database: join(disk, 'kiki.db'), marker: join(disk, 'marker') }, (e) => lost.push(e))
      const insert = (key: string, size: number) =>
        full.commits.durable(() => full.db.prepare('INSERT INTO meta VALUES (?, ?)').run(key, 'y'.repeat(size)))
      try {
        await insert('before', 1000)
        writeFileSync(join(disk, 'ballast'), Buffer.alloc(400_000))
        const both = await Promise.all([fails(insert('big', 900_000)), fails(insert('small', 10))])
        expect(both[0]).toMatchObject({ code: 'internal_error', hint: expect.stringContaining('free space') })
        const kept = full.db.prepare('SELECT key FROM meta ORDER BY rowid').pluck()
        expect(kept.all()).toEqual(both[1] === undefined ? ['before', 'small'] : ['before'])
        full.commits.lazy(() => void full.db.prepare('INSERT INTO meta VALUES (?, ?)').run('read', 'y'.repeat(900_000)))
        full.commits.flush()
        expect(lost).toHaveLength(1)
        rmSync(join(disk, 'ballast'))
        await insert('after', 1000)
        expect(kept.all()).toContain('after')
        expect(full.db.pragma('integrity_check', { simple: true })).toBe('ok')
      } finally {
        full.close()
        execFileSync('umount', [disk])
      }
    },
  )

  it.skipIf(!root)('GU-43 at the first start leaves nothing that a later start would stumble over', () => {
    const disk = join(home.dir, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk])
    try {
      const files = { database: join(disk, 'kiki.db'), marker: join(disk, 'marker') }
      expect(() => openStore(files, () => {})).toThrow('cannot be written')
      expect(existsSync(files.database)).toBe(false)
      execFileSync('mount', ['-o', 'remount,size=2m', disk])
      openStore(files, () => {}).close()
    } finally {
      execFileSync('umount', [disk])
    }
  })
})

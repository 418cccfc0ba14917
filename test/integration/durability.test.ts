import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'

const strace = spawnSync('strace', ['-V']).status === 0
if (!strace) console.warn('strace is missing: the syncs of a host are not counted')

let host: TestHost
let client: TestClient
let connect: () => Promise<TestClient>
beforeEach(async () => {
  host = await startHost()
  const connection = await host.connection()
  // The test alone decides when a host runs.
  const options = { session: await host.session(connection), args: ['--no-start'] }
  connect = () => connectClient(host, connection, 'v2 auto', options)
  client = await connect()
  // The first call of a kind may load code; what is counted comes after it.
  await client.call('Write', { path: 'warm.txt', content: 'x', _kiki: { idempotency_key: 'warm' } })
  await client.call('Read', { path: 'warm.txt' })
})
afterEach(async () => {
  await client.close()
  await host.stop()
})

/** Paths that the host synced while `work` ran, in order. */
async function syncsOf(work: () => Promise<unknown>): Promise<string[]> {
  const trace = join(host.base, 'trace')
  const args = ['-f', '-y', '-e', 'trace=fsync,fdatasync', '-o', trace, '-p', String(host.pid)]
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  await once(tracer.stderr, 'data') // "strace: Process … attached"
  await work()
  const gone = once(tracer, 'exit')
  tracer.kill('SIGINT')
  await gone
  const found = readFileSync(trace, 'utf8').matchAll(/f(?:data)?sync\(\d+<([^>]*)>/g)
  return [...found].map(([, path = '']) => path)
}

describe.skipIf(!strace)('syncs of a host', () => {
  it('GU-01 GU-07 a keyed Write syncs the log twice at most, once before its effect, and its file and journal once each', async () => {
    const syncs = await syncsOf(() =>
      client.call('Write', { path: 'new.txt', content: 'new', _kiki: { idempotency_key: 'new' } }),
    )
    const wal = join(host.home, 'kiki.db-wal')
    expect(syncs.filter((path) => path === wal)).toHaveLength(2)
    const rest = syncs.filter((path) => path !== wal)
    expect(rest.filter((path) => path.startsWith(join(host.home, 'changes', 'op_')))).toHaveLength(1)
    expect(rest.filter((path) => path.startsWith(join(host.workspace, '.kiki-')))).toHaveLength(1)
    // The names of both files reach the disk with their folders.
    expect(rest.filter((path) => [join(host.home, 'changes'), host.workspace].includes(path))).toHaveLength(2)
    expect(rest).toHaveLength(4)
    // The operation is on disk before the file, and its outcome after it.
    expect([syncs[0], syncs.at(-1)]).toEqual([wal, wal])
  })

  it('GU-07 GU-08 a Read syncs nothing, nor do many', async () => {
    const syncs = await syncsOf(async () => {
      await client.call('Read', { path: 'warm.txt' })
      await Promise.all(Array.from({ length: 50 }, () => client.call('Read', { path: 'warm.txt' })))
    })
    expect(syncs).toEqual([])
  })

  it('GU-07 side effects that come together share their syncs', async () => {
    const syncs = await syncsOf(() =>
      Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          client.call('Write', { path: `many-${i}.txt`, content: 'x', _kiki: { idempotency_key: `many-${i}` } }),
        ),
      ),
    )
    const wal = syncs.filter((path) => path.endsWith('kiki.db-wal')).length
    expect(wal).toBeGreaterThanOrEqual(2)
    expect(wal).toBeLessThan(40)
  })
})

/** What is on record, as another process sees it. */
function rows(): { idempotency_key: string | null; status: string; tool: string }[] {
  const db = new BetterSqlite3(join(host.home, 'kiki.db'), { readonly: true })
  try {
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    return db.prepare('SELECT idempotency_key, status, tool FROM operations ORDER BY seq').all() as ReturnType<
      typeof rows
    >
  } finally {
    db.close()
  }
}

describe('a host that is killed', () => {
  it('GU-03 GU-08 has every side effect on record that it answered; of reads it may lose some', async () => {
    const answered = new Set<string>()
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: 30 }, async (_, i) => {
        const key = `r${round}-${i}`
        const reply = await client.call('Write', { path: `${key}.txt`, content: key, _kiki: { idempotency_key: key } })
        if (meta<{ status: string }>(reply, 'kiki/operation')?.status === 'completed') answered.add(key)
      })
      const reads = Array.from({ length: 5 }, () => client.call('Read', { path: 'warm.txt' }))
      const settled = Promise.allSettled([...calls, ...reads])
      await Promise.race(calls)
      await host.kill()
      await settled
      await client.close()
      await host.restart()
      client = await connect()
      const recorded = rows()
      for (const key of answered) {
        const row = recorded.find((found) => found.idempotency_key === key)
        expect(row, key).toMatchObject({ status: 'completed', tool: 'Write' })
        expect(readFileSync(join(host.workspace, `${key}.txt`), 'utf8')).toBe(key)
      }
    }
    expect(answered.size).toBeGreaterThanOrEqual(5)
  })

  it.skipIf(!strace).each([
    ['as it puts the file in place', 'link,linkat'],
    ['as it makes the file beside', 'fchmod,fsync'],
  ])('GU-05 OP-16 %s has its call as of unknown outcome, which never runs again and says so', async (_, calls) => {
    const write = () =>
      client.call('Write', { path: 'cut.txt', content: 'cut', _kiki: { idempotency_key: 'cut', wait_ms: 1000 } })
    const path = join(host.workspace, 'cut.txt')
    const gone = once(host.process, 'exit')
    // The first syncs are those of the accepting commit and of the journal.
    const nth = calls.includes('fsync') ? 4 : 1
    const kill = ['-f', '-e', `trace=${calls}`, '-e', `inject=${calls}:signal=SIGKILL:when=${nth}`]
    const tracer = spawn('strace', [...kill, '-o', '/dev/null', '-p', String(host.pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await once(tracer.stderr, 'data')
    const cut = write().catch(() => undefined)
    await gone
    const there = existsSync(path)
    expect(rows().at(-1)).toMatchObject({ idempotency_key: 'cut', status: 'running' })
    await cut
    await client.close()
    await host.restart()
    client = await connect()
    expect(rows().at(-1)).toMatchObject({ idempotency_key: 'cut', status: 'outcome_unknown' })
    const reply = await write()
    expect(meta(reply, 'kiki/error'), textOf(reply)).toMatchObject({ code: 'outcome_unknown' })
    expect(textOf(reply)).toContain('Inspect the target')
    expect(existsSync(path)).toBe(there)
    expect(readdirSync(host.workspace).filter((name) => name.startsWith('.kiki-'))).toEqual([])
  })

  it('GU-43 GU-07 a log whose end was torn by the crash costs what was not acknowledged only', async () => {
    await host.kill()
    const wal = join(host.home, 'kiki.db-wal')
    writeFileSync(wal, Buffer.concat([readFileSync(wal), Buffer.alloc(5000, 0x5a)]))
    await client.close()
    await host.restart()
    client = await connect()
    const reply = await client.call('Write', { path: 'warm.txt', content: 'x', _kiki: { idempotency_key: 'warm' } })
    expect(meta(reply, 'kiki/operation')).toMatchObject({ status: 'completed', replayed: true })
  })
})

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  linkSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRaw } from '../bridge/raw-client.js'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

const id = (result: CallResult) => meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
const code = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const key = (name: string, more: object = {}) => ({ _kiki: { idempotency_key: name, ...more } })

/** Another process that opens the database of a home; what it prints. */
function inDatabase(home: string, script: string): string {
  const code = `import Database from 'better-sqlite3'
    const db = new Database(${JSON.stringify(join(home, 'kiki.db'))})
    ${script}
    db.close()`
  return execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
}

describe('one host, two connections', () => {
  let host: TestHost
  let mine: { connection: string; session: string; client: TestClient }
  let other: { connection: string; session: string; client: TestClient }
  beforeAll(async () => {
    host = await startHost()
    const join = async () => {
      const connection = await host.connection()
      const session = await host.session(connection)
      return { connection, session, client: await connectClient(host, connection, 'v1', { session }) }
    }
    mine = await join()
    other = await join()
  })
  afterAll(async () => {
    await Promise.all([mine.client.close(), other.client.close()])
    await host.stop()
  })
  const file = (name: string) => join(host.workspace, name)

  it('FC-E10 FI-15 of 200 pairs of edits of one file over two bridges and sessions none is lost', async () => {
    for (let round = 0; round < 200; round++) {
      writeFileSync(file('pair'), '1\n2\n')
      const [one, two] = await Promise.all([
        mine.client.call('Edit', { path: 'pair', old_string: '1', new_string: 'one', ...key(`a${round}`) }),
        other.client.call('Edit', { path: 'pair', old_string: '2', new_string: 'two', ...key(`b${round}`) }),
      ])
      for (const refused of [one, two]) if (refused.isError) expect(code(refused)).toBe('conflict')
      const expected = `${one.isError ? '1' : 'one'}\n${two.isError ? '2' : 'two'}\n`
      expect(readFileSync(file('pair'), 'utf8')).toBe(expected)
    }
  })

  it('FI-15 many sorts of changes of one file at once leave what some order of the successful ones leaves', async () => {
    for (let round = 0; round < 20; round++) {
      writeFileSync(file('many'), Array.from({ length: 16 }, (_, i) => `<${i}>\n`).join(''))
      const changes = Array.from({ length: 16 }, (_, i) => {
        const { client } = i % 2 === 0 ? mine : other
        const edit = { old_string: `<${i}>`, new_string: `[${i}]` }
        const way = { path: 'many', ...key(`m${round}-${i}`) }
        return i % 3 === 0
          ? client.call('MultiEdit', { ...way, edits: [edit] })
          : client.call('Edit', { ...way, ...edit })
      })
      const done = await Promise.all(changes)
      for (const result of done) if (result.isError) expect(code(result)).toBe('conflict')
      const expected = done.map((result, i) => (result.isError ? `<${i}>\n` : `[${i}]\n`)).join('')
      expect(readFileSync(file('many'), 'utf8')).toBe(expected)
    }
  })

  it("FC-O03 a guessed key gives nobody another connection's result", async () => {
    const made = await mine.client.call('Write', { path: 'o3', content: 'secret of A\n', ...key('1') })
    expect(made.isError).toBeFalsy()
    const call = { path: 'o3', content: 'secret of A\n' }
    const foreign = await other.client.call('Write', { ...call, ...key('1', { session_ref: mine.session }) })
    expect(code(foreign)).toBe('session_unavailable')
    writeFileSync(file('o3'), 'changed since\n')
    const own = await other.client.call('Read', { path: 'o3', ...key('1') })
    expect(textOf(own)).toContain('changed since')
    expect(textOf(own)).not.toContain('secret')
    expect(id(own)).not.toBe(id(made))
    const conflict = await other.client.call('Write', { ...call, ...key('1') })
    expect(code(conflict)).toBe('idempotency_conflict')
    expect(JSON.stringify(conflict)).not.toContain(id(made))
  })

  it('FC-O04 a retry during the first run gets its operation at once, from any bridge, and nothing runs twice', async () => {
    writeFileSync(file('o4'), 'needle\n')
    const second = await connectClient(host, mine.connection, 'v2 2026-07-28', { session: mine.session })
    const release = await holdSearches(host, mine.connection, mine.session)
    try {
      const search = { pattern: 'needle', path: 'o4', ...key('o4', { wait_ms: 0 }) }
      const first = await mine.client.call('Grep', search)
      const retries = await Promise.all(
        Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? second : mine.client).call('Grep', search)),
      )
      for (const retry of retries)
        expect(retry.structuredContent).toMatchObject({ operation_id: id(first), status: 'running' })
      release()
      const result = await second.call('kiki_operation', { action: 'wait', operation_id: id(first) })
      expect(textOf(result)).toContain('1 match in 1 file')
    } finally {
      release()
      await second.close()
    }
    writeFileSync(file('o4'), '.')
    const edit = { path: 'o4', old_string: '.', new_string: '!.', ...key('o4-effect') }
    const all = await Promise.all(Array.from({ length: 50 }, () => mine.client.call('Edit', edit)))
    expect(new Set(all.map(id)).size).toBe(1)
    expect(readFileSync(file('o4'), 'utf8')).toBe('!.')
  })

  it('FC-O14 GU-10 with one key the same call in other spellings is replayed, and any other call is a conflict', async () => {
    const args = ['mcp', '--client', mine.connection, '--tools', '--home', host.home, '--session', mine.session]
    const raw = startRaw([MAIN, ...args])
    await raw.open()
    writeFileSync(file('o14'), 'é\n')
    let last = 0
    const call = async (tool: string, fields: string) => {
      const number = ++last
      const params = `{"name":"${tool}","arguments":{${fields},"_kiki":{"idempotency_key":"K1"}}}`
      raw.send(`{"jsonrpc":"2.0","id":${number},"method":"tools/call","params":${params}}\n`)
      return (await raw.answer(number)).result as unknown as CallResult
    }
    const first = await call('Edit', '"path":"o14","old_string":"é","new_string":"e","expected_count":1')
    expect(first.isError).toBeFalsy()
    const again = await call('Edit', '"expected_count":1.0,"new_string":"\\u0065","old_string":"\\u00e9","path":"o14"')
    expect(meta(again, 'kiki/operation')).toMatchObject({ operation_id: id(first), replayed: true })
    expect(code(await call('Edit', '"path":"o14","old_string":"é","new_string":"e","expected_count":2'))).toBe(
      'idempotency_conflict',
    )
    expect(code(await call('Edit', '"path":"o14","old_string":"e\\u0301","new_string":"e","expected_count":1'))).toBe(
      'idempotency_conflict',
    )
    expect(code(await call('Write', '"path":"o14","content":"x"'))).toBe('idempotency_conflict')
    expect(readFileSync(file('o14'), 'utf8')).toBe('e\n')
    raw.child.stdin?.end()
    await raw.exit
  })
})

it('FC-O05 OP-07 a retry after retention removed its operation is refused, and nothing runs', async () => {
  const host = await startHost()
  try {
    const connection = await host.connection()
    const session = await host.session(connection)
    writeFileSync(join(host.workspace, 'count'), '.')
    const edit = { path: 'count', old_string: '.', new_string: '!.', ...key('K') }
    const before = await connectClient(host, connection, 'v1', { session })
    expect((await before.call('Edit', edit)).isError).toBeFalsy()
    await before.close()
    await host.kill()
    // The row becomes 31 days old; the trigger that forbids this is put back.
    inDatabase(
      host.home,
      `const trigger = db.prepare("SELECT sql FROM sqlite_master WHERE name = 'operations_terminal'").pluck().get()
       db.exec('DROP TRIGGER operations_terminal')
       db.exec('UPDATE operations SET accepted_at = accepted_at - 31 * 86400000, ended_at = ended_at - 31 * 86400000')
       db.exec(trigger)`,
    )
    await host.restart()
    const after = await connectClient(host, connection, 'v1', { session })
    let answer = await after.call('Edit', edit)
    // Until the host's first pruning the operation is still there and is replayed: that never runs either.
    while (meta(answer, 'kiki/operation') !== undefined) answer = await after.call('Edit', edit)
    expect(code(answer)).toBe('idempotency_expired')
    expect(readFileSync(join(host.workspace, 'count'), 'utf8')).toBe('!.')
    await after.close()
  } finally {
    await host.stop()
  }
})

it('FC-O07 GU-40 a tool asked for the database by any name opens nothing, and every commit stands', async () => {
  const host = await startHost()
  try {
    const connection = await host.connection()
    const session = await host.session(connection, { workspace: host.base })
    const client = await connectClient(host, connection, 'v1', { session })
    linkSync(join(host.home, 'kiki.db'), join(host.base, 'hard.db'))
    for (const path of ['home/kiki.db', 'home/kiki.db-shm', 'home/host.lock', 'ws/../home/kiki.db', 'hard.db']) {
      expect(code(await client.call('Read', { path })), path).toBe('path_denied')
      const edit = { path, old_string: 'a', new_string: 'b', ...key(path) }
      expect(code(await client.call('Edit', edit)), path).toBe('path_denied')
    }
    await client.call('Grep', { pattern: 'SQLite', hidden: true, ignored: true })
    inDatabase(host.home, "db.prepare('SELECT count(*) FROM operations').get()")
    for (let i = 0; i < 50; i++) {
      const write = await client.call('Write', { path: 'ws/n', content: String(i), ...key(`n${i}`) })
      expect(write.isError).toBeFalsy()
    }
    await client.close()
    await host.kill()
    const sql = "SELECT count(*) FROM operations WHERE tool = 'Write' AND status = 'completed'"
    expect(inDatabase(host.home, `console.log(db.prepare(${JSON.stringify(sql)}).pluck().get())`).trim()).toBe('50')
  } finally {
    await host.stop()
  }
})

interface Started {
  child: ChildProcess
  /** Undefined while it serves. */
  exit: number | null | undefined
  stderr(): string
}

/** A start in the foreground: it serves, or it ended. */
async function start(home: string): Promise<Started> {
  const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk
  })
  const started: Started = { child, exit: undefined, stderr: () => stderr }
  const ended = once(child, 'close').then(([exit]) => ({ ...started, exit: exit as number | null }))
  const first = await Promise.race([ended, once(child.stdout, 'data')])
  if (!Array.isArray(first)) return first
  return 'error' in JSON.parse(String(first[0])) ? ended : started
}

async function end({ child }: Started, signal: NodeJS.Signals): Promise<void> {
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}

it('FC-O10 GU-40 of two starts at once on one home exactly one serves, 50 times, each after a kill -9 of the last', async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-')))
  const home = join(base, 'home')
  try {
    for (let round = 0; round < 50; round++) {
      const both = await Promise.all([start(home), start(home)])
      const [holder, ...more] = both.filter(({ exit }) => exit === undefined)
      const [loser] = both.filter(({ exit }) => exit !== undefined)
      expect(more).toEqual([])
      expect(loser?.exit, loser?.stderr()).toBe(1)
      expect(loser?.stderr()).toContain(home)
      expect(loser?.stderr()).toContain(String(holder?.child.pid))
      execFileSync('cat', [join(home, 'host.lock')])
      if (round % 10 === 0) expect((await start(home)).exit).toBe(1)
      if (holder !== undefined) await end(holder, 'SIGKILL')
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}, 240_000)

it('FC-O12 GU-43 a damaged, empty or foreign database stops the start, names the file, and is left as it is', async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-')))
  const home = join(base, 'home')
  const database = join(home, 'kiki.db')
  const damages: Record<string, () => void> = {
    'bytes 4096 to 8192': () => void writeSync(openSync(database, 'r+'), Buffer.alloc(4096, 'x'), 0, 4096, 4096),
    'zero bytes': () => truncateSync(database, 0),
    'a log of another database': () => writeFileSync(`${database}-wal`, Buffer.alloc(8192, 'w')),
    'the file gone': () => rmSync(database),
  }
  try {
    for (const [name, damage] of Object.entries(damages)) {
      rmSync(home, { recursive: true, force: true })
      const first = await start(home)
      await end(first, 'SIGTERM')
      damage()
      const before = readdirSync(home).filter((file) => file.startsWith('kiki.db'))
      const bytes = () => before.map((file) => [file, readFileSync(join(home, file), 'hex')])
      const left = bytes()
      const second = await start(home)
      expect(second.exit, name).toBe(1)
      expect(second.stderr(), name).toContain(database)
      expect(second.stderr(), name).not.toContain('    at ')
      expect(bytes(), name).toEqual(left)
      expect(existsSync(database), name).toBe(before.includes('kiki.db'))
      expect(readdirSync(home), name).not.toContain('kiki.sock')
    }
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'

let host: TestHost
let client: TestClient
let connection: string
let session: string
let out: string

beforeEach(async () => {
  out = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-backup-')))
  host = await startHost({ config: '[calls]\nwait_ms = 1234\n' })
  connection = await host.connection()
  session = await host.session(connection)
  client = await connectClient(host, connection, 'v2 auto', { args: ['--no-start'] })
})
afterEach(async () => {
  await client.close()
  await host.stop()
  rmSync(out, { recursive: true, force: true })
})

const file = () => join(out, 'kiki.backup')
const write = async (path: string, content: string, key: string = crypto.randomUUID()) => {
  const done = await client.call('Write', { path, content, _kiki: { session_ref: session, idempotency_key: key } })
  expect(done.isError, textOf(done)).toBeFalsy()
  return meta<{ operation_id: string }>(done, 'kiki/operation').operation_id
}

/** Host and client end; the home and the workspace stay. */
async function stopHost() {
  const gone = new Promise((resolve) => host.process.once('exit', resolve))
  expect((await runKiki(host.home, ['stop'])).code).toBe(0)
  await gone
}

it('GU-40 GU-43 a backup of a running host, restored on a fresh machine, is the same Kiki: sessions, results, undo', async () => {
  const big = 'x\n'.repeat(20_000)
  writeFileSync(join(host.workspace, 'a'), 'before')
  const changed = await write('a', 'after', 'one key')
  const read = await client.call('Read', { path: 'a', _kiki: { session_ref: session, idempotency_key: 'read' } })
  await write('big', big)
  const { code, value } = await kikiJson(host.home, ['backup', file()])
  expect([code, value]).toMatchObject([0, { file: file(), size: statSync(file()).size }])
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect(readdirSync(out)).toEqual(['kiki.backup'])
  await stopHost()

  const fresh = join(out, 'fresh')
  const restored = await kikiJson(fresh, ['restore', file()])
  expect([restored.code, restored.value]).toMatchObject([0, { home: fresh, kept: null, unfinished: 0 }])
  for (const name of ['config.toml', 'owner.token', 'keys/home-id', 'keys/credential.key']) {
    expect(readFileSync(join(fresh, name)), name).toEqual(readFileSync(join(host.home, name)))
    expect(statSync(join(fresh, name)).mode & 0o777, name).toBe(0o600)
  }
  const again = await startHost({ base: out, homeName: 'fresh' })
  const other = await connectClient(again, connection, 'v1')
  try {
    const replay = await other.call('Read', { path: 'a', _kiki: { session_ref: session, idempotency_key: 'read' } })
    expect(replay.content.slice(1)).toEqual(read.content)
    expect(await again.api('GET', `/api/operations/${changed}`)).toMatchObject({ tool: 'Write', status: 'completed' })
    await again.api('POST', `/api/operations/${changed}/undo`)
    expect(readFileSync(join(host.workspace, 'a'), 'utf8')).toBe('before')
  } finally {
    await other.close()
    await again.stop()
  }
})

it('GU-43 a damaged home is replaced by its backup, and what was there is kept', async () => {
  await write('a', '1')
  await kikiJson(host.home, ['backup', file()])
  const late = await write('b', '2')
  await stopHost()
  const database = join(host.home, 'kiki.db')
  const bytes = readFileSync(database)
  writeFileSync(database, bytes.fill(0x5a, 4096, 8192))
  const broken = await runKiki(host.home, ['start'])
  expect([broken.code, broken.err]).toEqual([1, expect.stringContaining('kiki restore FILE')])
  expect((await runKiki(host.home, ['backup', join(out, 'other')])).code).toBe(1)
  expect(existsSync(join(out, 'other'))).toBe(false)
  const { code, value } = await kikiJson(host.home, ['restore', file()])
  expect(code).toBe(0)
  expect(readFileSync(join(value.kept, 'kiki.db'))).toEqual(bytes)
  expect(readdirSync(join(value.kept, 'changes'))).toContain(`${late}.0`)
  expect(readdirSync(host.home).filter((name) => name.startsWith('restore-'))).toEqual([])
  await host.restart()
  const { sessions } = await host.api<{ sessions: { session_ref: string }[] }>('GET', '/api/sessions')
  expect(sessions.map((one) => one.session_ref)).toEqual([session])
  await expect(host.api('GET', `/api/operations/${late}`)).rejects.toThrow('not_found')
})

it("FC-O07 GU-40 a backup drops none of the host's locks: what is committed after it survives another process and a kill", async () => {
  await write('a', '1')
  await kikiJson(host.home, ['backup', file()])
  await kikiJson(host.home, ['backup', file()])
  const peek = await openElsewhere(join(host.home, 'kiki.db'))
  expect(peek).toBe('ok')
  const ids: string[] = []
  for (let index = 0; index < 50; index += 1) ids.push(await write(`w${index}`, 'x'))
  expect((await runKiki(host.home, ['start'])).err).toContain(`pid ${host.pid}`)
  await host.kill()
  const db = new BetterSqlite3(join(host.home, 'kiki.db'))
  const known = db.prepare("SELECT id FROM operations WHERE tool = 'Write' ORDER BY seq").pluck().all()
  db.close()
  expect(known.slice(1)).toEqual(ids)
  await host.restart()
})

it('GU-40 GU-43 restore is refused while a host runs, and for what is no sound backup; nothing is changed', async () => {
  await write('a', '1')
  await kikiJson(host.home, ['backup', file()])
  const refused = await runKiki(host.home, ['restore', file()])
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('kiki stop')])
  await stopHost()
  const before = tree(host.home)
  const damaged = join(out, 'damaged')
  const bytes = readFileSync(file())
  const at = bytes.lastIndexOf('wait_ms = 1234')
  expect(at).toBeGreaterThan(0)
  bytes.write('wait_ms = 9999', at)
  writeFileSync(damaged, bytes)
  const cut = join(out, 'cut')
  writeFileSync(cut, readFileSync(file()).subarray(0, 40_000))
  const text = join(out, 'text')
  writeFileSync(text, 'no database')
  const newer = join(out, 'newer')
  copyFileSync(file(), newer)
  const db = new BetterSqlite3(newer)
  db.pragma('user_version = 999')
  db.close()
  const plain = join(out, 'plain')
  copyFileSync(join(host.home, 'kiki.db'), plain)
  for (const [name, says] of [
    [damaged, 'config.toml was altered'],
    [cut, 'is damaged'],
    [text, 'is not a backup'],
    [newer, 'newer Kiki'],
    [plain, 'is not a backup'],
    [join(host.home, 'kiki.db'), 'lies in'],
    [join(out, 'none'), 'There is no file'],
  ] as const) {
    const ran = await runKiki(host.home, ['restore', name])
    expect([name, ran.code, ran.err]).toEqual([name, 1, expect.stringContaining(says)])
  }
  expect(tree(host.home)).toEqual(before)
  await host.restart()
})

it('FC-O07 a backup replaces only an earlier one, and stands never in the home', async () => {
  const mine = join(out, 'mine.txt')
  writeFileSync(mine, 'mine')
  const link = join(out, 'link')
  symlinkSync(join(host.home, 'kiki.db'), link)
  const hard = join(out, 'hard')
  linkSync(join(host.home, 'kiki.db'), hard)
  for (const target of [mine, link, hard, join(host.home, 'x.backup'), join(out, 'none', 'x'), out]) {
    const ran = await runKiki(host.home, ['backup', target])
    expect([target, ran.code]).toEqual([target, 1])
  }
  rmSync(hard)
  expect(readFileSync(mine, 'utf8')).toBe('mine')
  expect(readdirSync(out).sort()).toEqual(['link', 'mine.txt'])
  await write('a', '1')
  expect(await openElsewhere(join(host.home, 'kiki.db'))).toBe('ok')
})

it('GU-40 without a host the backup is made under the lock of the home', async () => {
  await write('a', '1')
  await stopHost()
  const { code, value } = await kikiJson(host.home, ['backup', file()])
  expect([code, value.files]).toEqual([0, expect.any(Number)])
  expect((await runKiki(join(out, 'nothing'), ['backup', join(out, 'x')])).err).toContain('no Kiki database')
  expect(existsSync(join(out, 'nothing'))).toBe(false)
  await host.restart()
  expect((await host.api<{ sessions: unknown[] }>('GET', '/api/sessions')).sessions).toHaveLength(1)
})

it('GU-05 what was unfinished in a backup never runs after a restore: it may have run since', async () => {
  await write('a', '1')
  await kikiJson(host.home, ['backup', file()])
  await stopHost()
  const db = new BetterSqlite3(file())
  const waiting = ['accepted', 'waiting_approval', 'running'].map((status, index) => {
    const id = `op_unfinished${index}`
    db.prepare(
      `INSERT INTO operations (id, connection_id, session_ref, tool, effect, arguments, fingerprint, policy_version, decision,
         status, accepted_at) VALUES (?, ?, ?, 'Write', 'write', ?, 'f', 1, '{"kind":"allow","by":"x"}', ?, ?)`,
    ).run(id, connection, session, JSON.stringify({ path: `again${index}`, content: 'x' }), status, Date.now())
    return id
  })
  db.close()
  const { value } = await kikiJson(host.home, ['restore', file()])
  expect(value.unfinished).toBe(3)
  await host.restart()
  for (const id of waiting) {
    expect(await host.api('GET', `/api/operations/${id}`)).toMatchObject({ status: 'outcome_unknown' })
  }
  expect(readdirSync(host.workspace)).toEqual(['a'])
})

it('GU-60 a settings file that is a link to the dotfiles of the owner is in the backup too', async () => {
  const dotfile = join(out, 'dotfile.toml')
  writeFileSync(dotfile, '[calls]\nwait_ms = 77\n')
  rmSync(join(host.home, 'config.toml'))
  symlinkSync(dotfile, join(host.home, 'config.toml'))
  await kikiJson(host.home, ['backup', file()])
  chmodSync(file(), 0o644)
  const fresh = join(out, 'fresh')
  expect((await kikiJson(fresh, ['restore', file()])).code).toBe(0)
  expect(readFileSync(join(fresh, 'config.toml'), 'utf8')).toContain('77')
  expect(statSync(join(fresh, 'kiki.db')).mode & 0o777).toBe(0o600)
})

/** Every name in a folder with its bytes. */
function tree(root: string): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(
    names.map((name) => [name, statSync(join(root, name)).isFile() ? readFileSync(join(root, name), 'base64') : '']),
  )
}

/** Opens a database and closes it again in another process, which drops the WAL of one whose locks are gone. */
async function openElsewhere(path: string): Promise<string> {
  const { execFileSync } = await import('node:child_process')
  const program = `
    const db = new (require('better-sqlite3'))(process.argv[1]);
    db.prepare('SELECT count(*) FROM operations').get();
    db.close();
    console.log('ok')`
  return execFileSync(process.execPath, ['-e', program, path], { encoding: 'utf8' }).trim()
}

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { runKiki } from '../helpers/run-kiki.js'
import { watch } from '../helpers/watcher.js'
import { attach, commandBench, factsOf, operationOf, outputOf, sleeping, textOf } from './command-bench.js'

let base: string
let path: string
let host: TestHost

beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-nosandbox-')))
  // All that a host needs but bwrap.
  path = join(base, 'bin')
  mkdirSync(path)
  for (const name of ['bash', 'sh', 'mkfifo', 'cat', 'sleep', 'id']) symlinkSync(`/usr/bin/${name}`, join(path, name))
  symlinkSync(process.execPath, join(path, 'node'))
  host = await startHost({ base, env: { PATH: path } })
})
afterAll(async () => {
  await host.stop()
  rmSync(base, { recursive: true, force: true })
})

describe('where no sandbox works', () => {
  it('SB-02 GU-12 required refuses commands, says why, and uses up no key', async () => {
    const at = await commandBench(host, { sandbox: 'required', ceiling: 'full' })
    const refused = await at.client.call('Bash', { command: 'echo x', _kiki: { idempotency_key: 'k' } })
    expect(textOf(refused)).toMatch(
      /^sandbox_unavailable: bubblewrap does not work here: There is no program "bwrap".*apt install bubblewrap.*kiki doctor/s,
    )
    expect(operationOf(refused)).toBeUndefined()
    const list = await at.client.call('kiki_operation', { action: 'list' })
    expect((list.structuredContent as { operations: unknown[] }).operations).toEqual([])
    expect(await host.api('GET', `/api/connections/${at.connection}`)).toMatchObject({
      commands: expect.stringContaining('refused'),
    })
    await at.client.close()
  })

  it('SB-02 SB-04 preferred runs, marks the operation, and the approval and the owner’s views show it', async () => {
    const at = await commandBench(host, { sandbox: 'preferred', ceiling: 'full' }, { mode: 'manual' })
    const watcher = await watch(host.socket)
    const started = await at.bash('echo ran', {}, { wait_ms: 0 })
    const { operation_id } = operationOf(started)
    const { approvalId } = await watcher.next(
      (event, data) => event === 'approval.changed' && data.operationId === operation_id,
    )
    expect(await host.api('GET', `/api/approvals/${approvalId}`)).toMatchObject({ unconfined: true })
    const shown = await runKiki(host.home, ['approvals', 'show', String(approvalId)])
    expect(shown.out).toContain('It would run without a sandbox, with your own rights.')
    await host.api('POST', `/api/approvals/${approvalId}/approve`, {})
    const done = await at.client.call('kiki_operation', { action: 'wait', operation_id })
    expect(outputOf(done)).toBe('ran\n')
    expect(textOf(done)).toContain('No sandbox works here: it ran with the rights of the owner.')
    expect(factsOf(done)).toMatchObject({ unconfined: true })
    const row = await host.api<{ decision: object }>('GET', `/api/operations/${operation_id}`)
    expect(row.decision).toMatchObject({ unconfined: true })
    expect(await host.api('GET', '/api/status')).toMatchObject({ sandbox: 'none', unconfined_connections: 1 })
    const connection = await runKiki(host.home, ['connections', 'show', at.connection])
    expect(connection.out).toContain('they have your own rights on this machine')
    await watcher.close()
    await at.client.close()
  })

  it('SB-02 AP-05 what was approved as confined does not run once no sandbox works', async () => {
    const own = join(base, 'vanishing')
    mkdirSync(own)
    const programs = join(own, 'bin')
    cpSync(path, programs, { recursive: true, verbatimSymlinks: true })
    for (const name of ['bwrap', 'true']) symlinkSync(`/usr/bin/${name}`, join(programs, name))
    const other = await startHost({ base: own, env: { PATH: programs } })
    const at = await commandBench(other, { sandbox: 'preferred', ceiling: 'full' }, { mode: 'manual' })
    const watcher = await watch(other.socket)
    const { operation_id } = operationOf(await at.bash('echo ran > made', {}, { wait_ms: 0 }))
    const { approvalId } = await watcher.next(
      (event, data) => event === 'approval.changed' && data.operationId === operation_id,
    )
    expect(await other.api('GET', `/api/approvals/${approvalId}`)).toMatchObject({ unconfined: false })
    await watcher.close()
    // A bridge would start the next host by itself.
    await at.client.close()
    await other.kill()
    rmSync(join(programs, 'bwrap'))
    await other.restart()
    await other.api('POST', `/api/approvals/${approvalId}/approve`, {})
    const again = await attach(other, at.connection, at.session)
    const over = await again.client.call('kiki_operation', { action: 'wait', operation_id })
    expect(textOf(over)).toMatch(/^sandbox_unavailable: It was accepted to run in a sandbox, and none works any more/)
    expect(existsSync(join(other.workspace, 'made'))).toBe(false)
    await again.client.close()
    await other.stop()
  })

  it('SB-02 the list of questions says which commands would run without a sandbox', async () => {
    const at = await commandBench(host, { sandbox: 'off', ceiling: 'full' }, { mode: 'manual' })
    const watcher = await watch(host.socket)
    const { operation_id } = operationOf(await at.bash('echo x', {}, { wait_ms: 0 }))
    await watcher.next((event, data) => event === 'approval.changed' && data.operationId === operation_id)
    expect((await runKiki(host.home, ['approvals', 'list'])).out).toContain('Bash, no sandbox')
    await host.api('POST', `/api/operations/${operation_id}/cancel`)
    const shown = await runKiki(host.home, ['operations', 'show', operation_id])
    expect(shown.out).toContain('without a sandbox')
    await watcher.close()
    await at.client.close()
  })

  it('SB-04 whoever gives a connection commands is told that they have the owner’s own rights', async () => {
    const rights = 'they have your own rights on this machine'
    const flags = ['--tools', 'shell', '--allow-commands', '--sandbox', 'preferred']
    const added = await runKiki(host.home, ['connections', 'add', '--name', 'told', ...flags])
    expect(added.out).toContain(rights)
    const id = /client_[0-9A-Za-z_-]+/.exec(added.out)?.[0] ?? ''
    expect((await runKiki(host.home, ['connections', 'set', id, '--sandbox', 'required'])).out).not.toContain(rights)
    expect((await runKiki(host.home, ['connections', 'set', id, '--sandbox', 'off'])).out).toContain(rights)
  })

  it('CL-16 the doctor of a running host says the same, and what else is missing', async () => {
    const { checks } = await host.api<{ checks: { name: string; state: string; says: string; mend?: string }[] }>(
      'GET',
      '/api/doctor',
    )
    const by = Object.fromEntries(checks.map((check) => [check.name, check]))
    expect(by.sandbox).toMatchObject({ state: 'missing', says: expect.stringContaining('no program "bwrap"') })
    expect(by.sandbox?.mend).toContain('apt install bubblewrap')
    expect(by.git).toMatchObject({ state: 'missing' })
    for (const name of ['runtime', 'home', 'disk', 'ripgrep', 'bash', 'database', 'listener']) {
      expect(by[name], name).toMatchObject({ state: 'ok' })
    }
    const said = await runKiki(host.home, ['doctor'])
    expect(said.out).toMatch(/^missing +sandbox/m)
    expect(said.code).toBe(0)
  })
})

describe('kiki doctor without a host', () => {
  let home: string
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(base, 'doctor-')))
  })
  type Checks = { ok: boolean; checks: { name: string; state: string; says: string; mend?: string }[] }
  const look = async (env: NodeJS.ProcessEnv = {}) => {
    const ran = await runKiki(home, ['doctor', '--json'], env)
    const { ok, checks } = JSON.parse(ran.out) as Checks
    return { code: ran.code, err: ran.err, ok, by: Object.fromEntries(checks.map((check) => [check.name, check])) }
  }

  it('CL-16 GU-40 everything in order; the database is left alone', async () => {
    const file = join(home, 'kiki.db')
    writeFileSync(file, 'not a database', { mode: 0o600 })
    const { code, ok, by } = await look()
    expect({ code, ok }).toEqual({ code: 0, ok: true })
    for (const name of ['config', 'runtime', 'home', 'disk', 'ripgrep', 'bash', 'git', 'sandbox']) {
      expect(by[name], name).toMatchObject({ state: 'ok' })
    }
    expect(by.host).toMatchObject({ state: 'missing', mend: expect.stringContaining('kiki start --home') })
    expect(by.database).toBeUndefined()
    expect(readdirSync(home)).toEqual(['kiki.db'])
  })

  it('CL-16 GU-60 a home, or a folder or file in it, that others may get at is named, with the command that mends it', async () => {
    chmodSync(home, 0o755)
    const open = await look()
    expect(open).toMatchObject({ code: 1, ok: false, err: expect.stringContaining('Not in order: home.') })
    expect(open.by.home).toMatchObject({ state: 'broken', says: `others may get at ${home}` })
    const mend = /chmod .*$/.exec(open.by.home?.mend ?? '')?.[0] ?? ''
    mkdirSync(join(home, 'logs'), { mode: 0o700 })
    writeFileSync(join(home, 'logs', 'kiki.log'), '')
    chmodSync(join(home, 'logs', 'kiki.log'), 0o644)
    chmodSync(home, 0o700)
    const deep = await look()
    expect(deep.by.home).toMatchObject({ says: `others may get at ${join(home, 'logs', 'kiki.log')}` })
    execFileSync('sh', ['-c', mend])
    expect(await look()).toMatchObject({ code: 0, ok: true })
    // By a link it is the same home.
    chmodSync(home, 0o711)
    symlinkSync(home, `${home}-link`)
    expect((await runKiki(`${home}-link`, ['doctor'])).out).toMatch(/^broken +home +others may get at/m)
  })

  it.runIf(process.getuid?.() === 0)('CL-16 GU-60 a home of another user is said to be one', async () => {
    chownSync(home, 12345, 12345)
    expect((await look()).by.home).toMatchObject({ state: 'broken', says: `${home} belongs to another user` })
  })

  it('CL-16 SB-02 without bwrap and git both are missing, in the words of the refusal, and nothing is broken', async () => {
    const { code, by } = await look({ PATH: path })
    expect(code).toBe(0)
    expect(by.git).toMatchObject({ state: 'missing', mend: 'Install git.' })
    expect(by.browser).toMatchObject({ state: 'missing' })
    expect(by.sandbox).toMatchObject({
      state: 'missing',
      says: expect.stringMatching(/^bubblewrap does not work here: There is no program "bwrap"/),
      mend: expect.stringContaining('apt install bubblewrap'),
    })
  })

  it('CL-16 CF-02 a config.toml that no host would start with is broken, and one with a word too many is a warning', async () => {
    const file = join(home, 'config.toml')
    writeFileSync(file, '[sandbox]\nengine = "chroot"\n', { mode: 0o600 })
    const broken = await look()
    expect(broken).toMatchObject({ code: 1, ok: false })
    expect(broken.by.config).toMatchObject({ state: 'broken', says: expect.stringContaining(`${file}:2:`) })
    expect(broken.by.sandbox).toMatchObject({ says: 'not looked at' })
    writeFileSync(file, '[log]\nlevl = "info"\n')
    const warned = await look()
    expect(warned).toMatchObject({ code: 0, ok: true })
    expect(warned.by.config).toMatchObject({ state: 'warning', says: expect.stringContaining(`${file}:2:`) })
  })
})

describe('kiki doctor with a host that is not in order', () => {
  it('CL-16 GU-62 a socket that is open to others is found', async () => {
    const fine = await runKiki(host.home, ['doctor', '--json'])
    expect(fine.code).toBe(0)
    chmodSync(host.socket, 0o666)
    const ran = await runKiki(host.home, ['doctor', '--json'])
    chmodSync(host.socket, 0o600)
    expect(ran.code).toBe(1)
    expect(JSON.parse(ran.out)).toMatchObject({
      ok: false,
      checks: expect.arrayContaining([
        expect.objectContaining({ name: 'listener', state: 'broken', says: expect.stringContaining(host.socket) }),
      ]),
    })
  })
})

describe('background processes as the owner sees them', () => {
  it('SH-03 the owner lists and stops them, and the audit log knows', async () => {
    const at = await commandBench(host, { sandbox: 'off', ceiling: 'full' })
    const { process_id } = factsOf(await at.bash('sleep 800', { background: true })) as { process_id: string }
    const list = await runKiki(host.home, ['processes', 'list'])
    expect(list.out).toMatch(new RegExp(`${process_id}.*running`))
    expect((await runKiki(host.home, ['processes', 'stop', process_id])).out).toContain('is ended')
    expect(factsOf(await at.call('ProcessOutput', { process_id }))).toMatchObject({ status: 'ended' })
    expect((await runKiki(host.home, ['processes', 'stop', process_id])).out).toContain('was over already')
    const audit = await host.api<{ entries: { action: string }[] }>('GET', '/api/audit?action=process.stopped')
    expect(audit.entries).toHaveLength(2)
    await at.client.close()
  })

  it('SH-03 the list is narrowed by session and connection, and an unknown process is refused', async () => {
    const [one, two] = [await commandBench(host, { sandbox: 'off' }), await commandBench(host, { sandbox: 'off' })]
    const begin = async ({ bash }: typeof one) =>
      factsOf(await bash('sleep 801', { background: true })).process_id as string
    const [first, second] = [await begin(one), await begin(two)]
    const listed = async (query: string) =>
      (await host.api<{ processes: { id: string }[] }>('GET', `/api/processes?${query}`)).processes.map(({ id }) => id)
    expect(await listed(`session=${one.session}`)).toEqual([first])
    expect(await listed(`connection=${two.connection}`)).toEqual([second])
    expect(await listed(`session=${one.session}&connection=${two.connection}`)).toEqual([])
    expect(await listed('limit=2')).toEqual([second, first])
    const ran = await runKiki(host.home, ['processes', 'stop', 'proc_none'])
    expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(/There is no process proc_none.*processes list/s) })
    await host.api('POST', `/api/processes/${first}/stop`)
    expect(sleeping(['801'])).toEqual(['801'])
    await host.api('POST', `/api/processes/${second}/stop`)
    expect(sleeping(['801'])).toEqual([])
    for (const { client } of [one, two]) await client.close()
  })
})

import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { runKiki } from '../helpers/run-kiki.js'
import { watch } from '../helpers/watcher.js'
import { commandBench, factsOf, operationOf, outputOf, textOf } from './command-bench.js'

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
  it('CL-16 GU-60 everything in order, and each thing that is not, with exit code 1', async () => {
    const home = join(base, 'other')
    const fine = await runKiki(home, ['doctor', '--json'])
    expect(fine.code).toBe(0)
    expect(JSON.parse(fine.out)).toMatchObject({ ok: true })
    mkdirSync(home, { mode: 0o700 })
    chmodSync(home, 0o755)
    const open = await runKiki(home, ['doctor'])
    expect(open.code).toBe(1)
    expect(open.out).toMatch(/^broken +home +others may get at/m)
    chmodSync(home, 0o700)
    writeFileSync(join(home, 'config.toml'), '[sandbox]\nengine = "chroot"\n', { mode: 0o600 })
    const bad = await runKiki(home, ['doctor'])
    expect(bad.code).toBe(1)
    expect(bad.out).toMatch(/^broken +config .*engine/m)
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
})

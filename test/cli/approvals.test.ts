import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'
import { type Watcher, watch } from '../helpers/watcher.js'

let host: TestHost
let ref: string
let client: TestClient
let watcher: Watcher
let connection: string

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  connection = await host.connection({ ceiling: 'full' }, 'Desk \u001b[31mred\u202e')
  ref = await host.session(connection, { mode: 'manual' })
  client = await connectClient(host, connection, 'v1', { session: ref, args: ['--no-start'] })
  watcher = await watch(host.socket)
  writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\n')
  return async () => {
    await client.close()
    await watcher.close()
  }
})

let keys = 0
const key = () => `k${++keys}`
const edit = async () => {
  const args = {
    path: 'a.txt',
    old_string: 'two',
    new_string: '2\u001b[2J',
    _kiki: { idempotency_key: key(), wait_ms: 0 },
  }
  const { operation_id } = meta<{ operation_id: string }>(await client.call('Edit', args), 'kiki/operation')
  const { value } = await kikiJson(host.home, ['approvals', 'list'])
  const question = value.approvals.find((one: { operation: string }) => one.operation === operation_id)
  return { operation: operation_id, id: question.id as string }
}
const result = (operation: string) =>
  client.call('kiki_operation', { action: 'wait', operation_id: operation, wait_ms: 20_000 })
const content = () => readFileSync(join(host.workspace, 'a.txt'), 'utf8')
const run = (...args: string[]) => runKiki(host.home, args)
/** What could steer a terminal or deceive its reader. */
const STEERING = /(?!\n)[\p{Cc}\p{Cf}]/u

describe('kiki approvals', { timeout: 60_000 }, () => {
  it('CL-09 AP-03 GU-32 list and show, with nothing that steers a terminal', async () => {
    const { id, operation } = await edit()
    const list = await run('approvals', 'list')
    expect(list).toMatchObject({ code: 0, err: '' })
    expect(list.out).toMatch(
      new RegExp(`${id} .*Desk \\\\u\\{1b\\}\\[31mred.*Edit .*a\\.txt .*session\\.mode is manual`),
    )
    const show = await run('approvals', 'show', id)
    for (const line of [
      '  │ -two',
      '  │ +2\\u{1b}[2J',
      '  │ two',
      '  │ 2\\u{1b}[2J',
      'Effect     write',
      'It waits for your answer.',
    ])
      expect(show.out.split('\n')).toContain(line)
    expect(show.out).toContain(`Workspace  ${host.workspace}`)
    expect(list.out + show.out).not.toMatch(STEERING)
    const { value } = await kikiJson(host.home, ['approvals', 'show', id])
    expect(value).toMatchObject({
      id,
      operation,
      preview: expect.stringContaining('+2\\u{1b}[2J'),
      arguments: { path: 'a.txt' },
    })
    await run('approvals', 'deny', id)
    const after = await run('approvals', 'show', id)
    expect(after.out).toContain('It was denied by the owner.')
    const missing = await run('approvals', 'show', 'apr_none')
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('kiki approvals list')])
  })

  it('CL-09 AP-06 approves once; a second answer changes nothing and is told so', async () => {
    const { id, operation } = await edit()
    expect((await run('approvals', 'approve', id)).out).toBe(`${id} (Edit a.txt) was approved once by the owner.\n`)
    expect((await result(operation)).isError).not.toBe(true)
    expect(content()).toBe('one\n2\u001b[2J\n')
    const again = await run('approvals', 'deny', id)
    expect(again).toMatchObject({
      code: 0,
      out: `Nothing was changed: ${id} (Edit a.txt) was approved once by the owner before.\n`,
    })
    expect((await kikiJson(host.home, ['approvals', 'approve', id])).value).toMatchObject({ changed: false })
  })

  it('CL-09 AP-04 denies with a message; approves the kind for the session, or always by a rule that can be removed', async () => {
    const denied = await edit()
    await run('approvals', 'deny', denied.id, '--message', 'not today')
    expect(textOf(await result(denied.operation))).toContain('They say: “not today”')
    const always = await edit()
    const { out } = await run('approvals', 'approve', always.id, '--always')
    expect(out).toContain(`New rule: allow Edit(${host.workspace}/*)`)
    await result(always.operation)
    const rules = await run('policy', 'rules')
    const number = /owner rule (\d+)/.exec(rules.out)?.[1] ?? ''
    expect(rules.out).toMatch(
      new RegExp(`allow .*Edit\\(${host.workspace}/\\*\\) .*${connection} .*owner rule ${number}`),
    )
    expect((await run('policy', 'remove', number)).out).toBe(
      `Owner rule ${number} is removed. No unfinished call had to be cancelled.\n`,
    )
    expect((await run('policy', 'rules')).out).toContain('No standing rules')
    expect((await run('policy', 'remove', number)).code).toBe(1)

    writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\n')
    const session = await edit()
    expect((await run('approvals', 'approve', session.id, '--session')).out).toContain(
      `Covered: Edit:${host.workspace}`,
    )
    await result(session.operation)
    const args = { path: 'a.txt', old_string: 'one', new_string: '1', _kiki: { idempotency_key: key() } }
    expect((await client.call('Edit', args)).isError).not.toBe(true)
    expect((await run('approvals', 'approve', 'apr_1', '--session', '--always')).code).toBe(2)
  })

  it('AP-01 CL-02 CL-09 says that nobody takes questions, and counts those who do', async () => {
    expect((await kikiJson(host.home, ['status'])).value.approval_consumers).toBe(1)
    await watcher.close()
    const { out } = await run('approvals', 'list')
    expect(out).toContain('Nobody takes questions now')
    expect((await kikiJson(host.home, ['status'])).value.approval_consumers).toBe(0)
    watcher = await watch(host.socket)
  })
})

describe('kiki connections', { timeout: 60_000 }, () => {
  it('CL-05 AP-08 AP-09 each says what was cancelled', async () => {
    await edit()
    expect((await run('connections', 'pause', connection)).out).toContain('is paused. 1 unfinished call was cancelled.')
    expect((await run('connections', 'resume', connection)).out).toMatch(/is active\.\n$/)
    await edit()
    const set = await run('connections', 'set', connection, '--ceiling', 'manual')
    expect(set.out).toContain('\n1 unfinished call was cancelled.\n')
    await edit()
    const revoked = await run('connections', 'revoke', connection)
    expect(revoked.out).toContain('is revoked. 1 unfinished call was cancelled.')
    expect(revoked.out + set.out).not.toMatch(STEERING)
    expect((await run('connections', 'revoke', connection)).out).toContain('nothing was changed')
    const unsure = await run('connections', 'delete', connection)
    expect([unsure.code, unsure.err]).toEqual([1, expect.stringContaining('needs a confirmation')])
    expect(content()).toBe('one\ntwo\n')
  })
})

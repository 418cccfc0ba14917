import { once } from 'node:events'
import { mkdirSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectClient, meta, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'

let host: TestHost

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

describe('kiki operations', { timeout: 30_000 }, () => {
  it('CL-08 says what was touched, by whom, and how an allowed call ended', async () => {
    writeFileSync(join(host.workspace, 'notes.txt'), `first\n\tsecond\n${'long line\n'.repeat(1_000)}`)
    const connection = await host.connection()
    const ref = await host.session(connection)
    const client = await connectClient(host, connection, 'v2 auto', { session: ref })
    // With a key, since the result of a read without one is not kept.
    const id = async (path: string) =>
      meta<{ operation_id: string }>(
        await client.call('Read', { path, _kiki: { idempotency_key: path } }),
        'kiki/operation',
      ).operation_id
    const read = await id('notes.txt')
    const failed = await id('missing.txt')
    await client.close()

    const { out } = await runKiki(host.home, ['operations', 'list'])
    expect(out).toMatch(new RegExp(`${read} .*Read .*notes\\.txt .*completed .*${ref}`))
    expect(out).toMatch(new RegExp(`${failed} .*Read .*missing\\.txt .*failed: not_found`))
    const shown = (await runKiki(host.home, ['operations', 'show', read])).out
    expect(shown).toContain('allowed (it only reads)')
    expect(shown).toContain('\tsecond\n')
    expect(shown).toContain(`More: kiki operations show ${read} --json --home ${host.home}`)
    expect((await runKiki(host.home, ['operations', 'show', failed])).out).toContain('allowed, then failed')
  })

  it('CL-08 tells the owner, not a client, why a call has no result', async () => {
    writeFileSync(join(host.workspace, 'plain.txt'), 'content')
    const connection = await host.connection()
    const client = await connectClient(host, connection, 'v2 auto', { session: await host.session(connection) })
    const read = meta<{ operation_id: string }>(await client.call('Read', { path: 'plain.txt' }), 'kiki/operation')
    const again = await client.call('kiki_operation', { action: 'read', operation_id: read.operation_id })
    await client.close()
    expect(textOf(again)).toContain('Call the tool again.')
    const shown = (await runKiki(host.home, ['operations', 'show', read.operation_id])).out
    expect(shown).toContain('The result of Read was not saved')
    expect(shown).toContain('The client got it when it ended')
    expect(shown).not.toMatch(/call .*again|new key/i)
  })

  it('OP-16 CL-08 resolve notes what was found beside a call of unknown outcome, which stays as it is', async () => {
    writeFileSync(join(host.workspace, 'large.txt'), `a${'.'.repeat(48 * 1024 * 1024)}\n`)
    const connection = await host.connection()
    const ref = await host.session(connection)
    const client = await connectClient(host, connection, 'v2 auto', { session: ref, args: ['--no-start'] })
    const changes = join(host.home, 'changes')
    mkdirSync(changes, { recursive: true, mode: 0o700 })
    const watcher = watch(changes)
    const args = { path: 'large.txt', old_string: 'a', new_string: 'b', _kiki: { idempotency_key: 'large' } }
    const lost = client.call('Edit', args).catch((error: Error) => error)
    await once(watcher, 'change')
    await host.kill()
    watcher.close()
    await lost
    await client.close()
    await host.restart()
    const [{ id }] = (await kikiJson(host.home, ['operations', 'list', '--status', 'outcome_unknown'])).value.operations

    expect((await runKiki(host.home, ['operations', 'resolve', id])).code).toBe(2)
    const noted = await runKiki(host.home, [
      'operations',
      'resolve',
      id,
      '--happened',
      '--note',
      'seen \u001b[2Jin vim',
    ])
    expect(noted).toMatchObject({ code: 0, err: '' })
    expect(noted.out).toContain(`Noted beside ${id}: it happened: seen \\u001b[2Jin vim`)
    const shown = (await runKiki(host.home, ['operations', 'show', id])).out
    expect(shown).toMatch(/note .*it happened: seen \\u001b\[2Jin vim \(2/)
    expect(shown).toMatch(/status .*outcome_unknown/)
    const { value } = await kikiJson(host.home, ['operations', 'resolve', id, '--did-not-happen'])
    expect(value).toMatchObject({ status: 'outcome_unknown', note: { found: 'did_not_happen', note: '' } })
    const known = await kikiJson(host.home, ['operations', 'list', '--status', 'completed'])
    const refused = await runKiki(host.home, ['operations', 'resolve', known.value.operations[0].id, '--happened'])
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('is known: it is completed')])
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectClient, meta, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { runKiki } from '../helpers/run-kiki.js'

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
})

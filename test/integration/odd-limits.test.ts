import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectClient, meta } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'

let host: TestHost
beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

/** Leaves a process so many descriptors that it can still open. */
function leave(pid: number, count: number): void {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
  let limit = 0
  for (let free = 0; free < count || used.has(limit); limit++) if (!used.has(limit)) free++
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`])
}

it('GU-66 TQ-04 a host out of file descriptors refuses calls that need one, lives, and works again later', async () => {
  const connection = await host.connection()
  const client = await connectClient(host, connection, 'v1', { session: await host.session(connection) })
  writeFileSync(join(host.workspace, 'f'), 'hello\n')
  const calls = [
    () => client.call('Read', { path: 'f' }),
    () => client.call('Grep', { pattern: 'hello' }),
    () => client.call('List', {}),
    () => client.call('Write', { path: 'f', content: 'hello\n', _kiki: { idempotency_key: `${Math.random()}` } }),
  ]
  for (const call of calls) expect((await call()).isError).toBeFalsy()
  let refused = 0
  for (let count = 0; count < 6; count++) {
    for (const call of calls) {
      leave(host.pid, count)
      const answer = await call()
      if (answer.isError) {
        refused++
        expect(meta(answer, 'kiki/error'), JSON.stringify(answer)).toMatchObject({
          code: 'internal_error',
          hint: expect.anything(),
        })
      }
      execFileSync('prlimit', ['--pid', String(host.pid), '--nofile=4096:'])
    }
  }
  expect(refused).toBeGreaterThan(4)
  for (const call of calls) expect((await call()).isError).toBeFalsy()
  expect(host.process.exitCode).toBeNull()
  await client.close()
})

it('SE-09 a workspace whose path is too long is refused in words', async () => {
  const made = host.session(await host.connection(), { workspace: `/${'x'.repeat(300)}` })
  await expect(made).rejects.toMatchObject({ code: 'invalid_arguments' })
})

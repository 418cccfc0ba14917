import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectClient, meta } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { spawnHost } from './host-process.js'

const DENIAL = '[[permission.rules]]\ndecision = "deny"\npattern = "Write(secret/**)"\n'

let host: TestHost
beforeAll(async () => {
  host = await startHost({ config: DENIAL })
})
afterAll(() => host.stop())

const save = (text: string | Uint8Array) => writeFileSync(join(host.home, 'config.toml'), text)
const rules = async () =>
  (await host.api<{ rules: { pattern: string }[] }>('GET', '/api/policy/rules')).rules.map(({ pattern }) => pattern)

it.each([
  ['a number that is a text', `${DENIAL}[mcp]\ntool_timeout_ms = "abc"\n`, /config\.toml:5/],
  ['the same before the rules', `[mcp]\ntool_timeout_ms = "abc"\n${DENIAL}`, /config\.toml:2/],
  ['no TOML', `${DENIAL}[calls\n`, /config\.toml:4/],
  ['another bad rule', `${DENIAL}[[permission.rules]]\ndecision = "no"\npattern = "Read"\n`, /config\.toml:5/],
  ['no UTF-8', Buffer.concat([Buffer.from(DENIAL), Buffer.from([0xff, 0xfe])]), /UTF-8/],
])(
  'FC-C03 GU-66 %s: the new file is refused with its line, and what was denied stays denied',
  async (_, text, place) => {
    save(text)
    await expect(host.api('POST', '/api/policy/reload')).rejects.toThrow(place)
    expect(await rules()).toEqual(['Write(secret/**)'])
    const connection = await host.connection()
    const session = await host.session(connection)
    const client = await connectClient(host, connection, 'v1', { session })
    try {
      const denied = await client.call('Write', { path: 'secret/a.txt', content: 'x', _kiki: { idempotency_key: 'k' } })
      expect(meta<{ code: string }>(denied, 'kiki/error').code).toBe('permission_denied')
      expect(existsSync(join(host.workspace, 'secret/a.txt'))).toBe(false)
    } finally {
      await client.close()
    }
  },
)

it('FC-C03 a start with one wrong value is refused with its line, whatever the rules say', async () => {
  const home = join(host.base, 'other')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'config.toml'), `${DENIAL}[mcp]\ntool_timeout_ms = "abc"\n`)
  const started = spawnHost(home)
  expect(await started.ready).toBeUndefined()
  const { code, stderr } = await started.ended
  expect(code).not.toBe(0)
  expect(stderr).toMatch(/config\.toml:5.*tool_timeout_ms/)
})

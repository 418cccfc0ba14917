import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connectClient, ERAS } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'

let host: TestHost

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

describe.each(ERAS)('the catalog of an editor session as %s gets it', (era) => {
  it('TQ-01 TQ-02 TQ-03 is small, well named, and says what only reads', async () => {
    const grant = { tools: ['files', 'search', 'media', 'history', 'tasks'], ceiling: 'auto-edit' }
    const connection = await host.connection(grant)
    const client = await connectClient(host, connection, era, { session: await host.session(connection) })
    try {
      const definitions = await client.definitions()
      const tokens = definitions.map((one) => ({ name: one.name, tokens: encode(JSON.stringify(one)).length }))
      expect(tokens.filter((one) => one.tokens >= 600)).toEqual([])
      const native = tokens.filter((one) => !one.name.startsWith('kiki_'))
      expect(
        native.reduce((sum, one) => sum + one.tokens, 0),
        JSON.stringify(tokens),
      ).toBeLessThan(3500)
      // What a model is shown of it, the control tools included.
      const shown = definitions.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
      expect(encode(JSON.stringify(shown)).length).toBeLessThan(3500)

      // `_kiki` is described once in words: in the server's instructions.
      expect(client.instructions).toContain('idempotency_key')
      const readers = ['Read', 'List', 'Changes', 'Grep', 'Glob', 'ReadMedia']
      for (const { name, annotations, description, inputSchema } of definitions) {
        expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
        expect(description?.length).toBeLessThan(900)
        expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
        const hints = annotations as Record<string, unknown>
        expect(hints.readOnlyHint, name).toBe(readers.includes(name))
        for (const hint of ['destructiveHint', 'idempotentHint', 'openWorldHint'])
          expect(typeof hints[hint]).toBe('boolean')
        if (name.startsWith('kiki_')) continue
        const { properties, required } = inputSchema as {
          properties: { _kiki: { required?: string[] } }
          required?: string[]
        }
        expect(properties._kiki.required ?? [], name).toEqual(readers.includes(name) ? [] : ['idempotency_key'])
        expect(required?.includes('_kiki') ?? false, name).toBe(!readers.includes(name))
      }
    } finally {
      await client.close()
    }
  })
})

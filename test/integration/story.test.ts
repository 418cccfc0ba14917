import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, ERAS, type Era, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'

const CONTROL = ['kiki_session', 'kiki_operation', 'kiki_save_text']
const FILES = [
  'Read',
  'Write',
  'Edit',
  'MultiEdit',
  'ApplyPatch',
  'List',
  'Move',
  'Delete',
  'MakeDirectory',
  'Changes',
  'Undo',
  'Grep',
  'Glob',
]

let host: TestHost

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

/** Every page from `next` on, and how many there were. */
async function pageAll(client: TestClient, first: Record<string, unknown>): Promise<{ text: string; pages: number }> {
  let text = ''
  let pages = 0
  for (let next: Record<string, unknown> | undefined = first; next !== undefined; pages++) {
    const page: CallResult = await client.call('kiki_operation', next)
    expect(page.isError, textOf(page)).toBeFalsy()
    const structured = page.structuredContent as { text: string; next?: { arguments: Record<string, unknown> } }
    expect(page.content[0]?.text).toBe(structured.text)
    text += structured.text
    next = structured.next?.arguments
  }
  return { text, pages }
}

describe.each(ERAS)('a client of kind %s', (era: Era) => {
  it('SE-01 SE-02 SE-03 SE-04 SE-05 OP-01 OP-02 OP-03 OP-13 OP-14 from a fresh connection to a paged 5 MB result', async () => {
    const connection = await host.connection({}, `story ${era}`)
    const ref = await host.session(connection, { title: 'Story' })
    const sessionsBefore = await host.api<{ sessions: unknown[] }>('GET', `/api/sessions?connection=${connection}`)
    const client = await connectClient(host, connection, era)
    try {
      // A fresh connection: three tools, and no session made by connecting and listing.
      expect(await client.tools()).toEqual(CONTROL)
      expect(await host.api('GET', `/api/sessions?connection=${connection}`)).toEqual(sessionsBefore)

      // List, resume, list_changed, native tools.
      const listed = await client.call('kiki_session', { action: 'list' })
      expect(listed.structuredContent).toMatchObject({
        sessions: [{ session_ref: ref, title: 'Story', workspace: host.workspace, mode: 'full', attached: false }],
      })
      const changed = client.listChanged()
      const resumed = await client.call('kiki_session', { action: 'resume', session_ref: ref })
      expect(resumed.structuredContent).toMatchObject({ workspace: host.workspace, mode: 'full', tools: FILES })
      expect(textOf(resumed)).toContain(`"session_ref": "${ref}"`)
      await changed
      expect(await client.tools()).toEqual([...CONTROL, ...FILES])

      // Write, Read, Grep, Glob, Edit.
      const name = `story-${ERAS.indexOf(era)}.txt`
      const path = join(host.workspace, name)
      const written = await client.call('Write', {
        path: name,
        content: 'one\ntwo\n',
        _kiki: { session_ref: ref, idempotency_key: 'write' },
      })
      expect(meta(written, 'kiki/operation')).toMatchObject({ status: 'completed', session_ref: ref })
      expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n')
      expect(textOf(await client.call('Read', { path: name, _kiki: { session_ref: ref } }))).toContain('2\ttwo')
      const grep = await client.call('Grep', { pattern: '^two', _kiki: { session_ref: ref } })
      expect(textOf(grep)).toContain(name)
      const glob = await client.call('Glob', { pattern: 'story-*.txt', _kiki: { session_ref: ref } })
      expect(textOf(glob)).toContain(name)
      const edit = {
        path: name,
        old_string: 'two',
        new_string: 'two two',
        _kiki: { session_ref: ref, idempotency_key: 'edit' },
      }
      const edited = await client.call('Edit', edit)
      expect(edited.isError, textOf(edited)).toBeFalsy()
      expect(readFileSync(path, 'utf8')).toBe('one\ntwo two\n')

      // The same call again is replayed; the same key with other arguments is refused.
      const again = await client.call('Edit', edit)
      expect(again.content[0]?.text).toMatch(/^Replayed: nothing ran now\..* ran at \d{4}-.*new idempotency key/)
      expect(again.content.slice(1)).toEqual(edited.content)
      expect(meta(again, 'kiki/operation')).toEqual({ ...meta(edited, 'kiki/operation'), replayed: true })
      expect(meta(again, 'kiki/result')).toEqual(meta(edited, 'kiki/result'))
      const other = await client.call('Edit', { ...edit, new_string: 'secret of another call' })
      expect(other.isError).toBe(true)
      expect(meta(other, 'kiki/error')).toMatchObject({ code: 'idempotency_conflict' })
      expect(textOf(other)).toContain('Edit')
      expect(textOf(other)).not.toContain('two')
      expect(readFileSync(path, 'utf8')).toBe('one\ntwo two\n')

      // A 5 MB result comes as head and tail, and as pages that are the whole.
      const lines = Array.from({ length: 80_000 }, (_, i) => `${i} ${'é😀x'.repeat(i % 23)}`)
      writeFileSync(join(host.workspace, 'large.txt'), `${lines.join('\n')}\n`)
      const whole = lines.map((line, i) => `${i + 1}\t${line}`).join('\n')
      expect(whole.length).toBeGreaterThan(4_000_000)
      const large = await client.call('Read', { path: 'large.txt', limit: 100_000, _kiki: { session_ref: ref } })
      const shown = textOf(large)
      expect(shown.length).toBeLessThan(25_000)
      const [head = '', left] = /^([\s\S]*)\n\[… (\d+) of/.exec(shown)?.slice(1) ?? []
      const tail = /…\]\n([\s\S]*)$/.exec(shown)?.[1] ?? ''
      expect(whole.startsWith(head)).toBe(true)
      expect(whole.endsWith(tail)).toBe(true)
      expect(Number(left)).toBe(whole.length - head.length - tail.length)
      const { next } = meta<{ next: { tool: string; arguments: Record<string, unknown> } }>(large, 'kiki/operation')
      expect(next.tool).toBe('kiki_operation')
      const rest = await pageAll(client, { ...next.arguments, limit: 256_000 })
      expect(hash(head + rest.text)).toBe(hash(whole))
      const all = await pageAll(client, { ...next.arguments, offset: 0, limit: 255_999 })
      expect(hash(all.text)).toBe(hash(whole))
      expect(all.pages).toBeGreaterThan(15)

      // Every one of these calls is one operation.
      const { operations } = await host.api<{ operations: { tool: string }[] }>(
        'GET',
        `/api/operations?session=${ref}&limit=200`,
      )
      expect(operations.map((row) => row.tool).reverse()).toEqual(['Write', 'Read', 'Grep', 'Glob', 'Edit', 'Read'])
    } finally {
      await client.close()
    }
  })

  it('SE-02 SE-05 with --session the tools are there from the start and calls need no session_ref', async () => {
    const connection = await host.connection({}, `fixed ${era}`)
    const ref = await host.session(connection)
    const client = await connectClient(host, connection, era, { session: ref })
    try {
      expect(await client.tools()).toEqual([...CONTROL, ...FILES])
      writeFileSync(join(host.workspace, 'fixed.txt'), 'there')
      const read = await client.call('Read', { path: 'fixed.txt' })
      expect(textOf(read)).toContain('1\tthere')
      expect(meta(read, 'kiki/operation')).toMatchObject({ session_ref: ref })
    } finally {
      await client.close()
    }
  })
})

function hash(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('hex')
}

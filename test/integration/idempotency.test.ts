import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'

/** What a call to a bridge of a revoked connection ends with: its own words, or the end of the bridge if that came first. */
const REVOKED = /revoked|went away|closed|not connected/i

let host: TestHost
let connection: string
let ref: string
let client: TestClient

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  connection = await host.connection()
  ref = await host.session(connection)
  client = await connectClient(host, connection, 'v1', { session: ref })
  writeFileSync(counter(), '.')
  return () => client.close()
})

const counter = () => join(host.workspace, 'count.txt')
const count = () => readFileSync(counter(), 'utf8').length - 1

/** A call whose every run leaves one more mark in the file: an oracle of how often it ran. */
const mark = (key?: string) => ({
  path: 'count.txt',
  old_string: '.',
  new_string: '!.',
  _kiki: key === undefined ? {} : { idempotency_key: key },
})
const id = (result: CallResult) => meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
const code = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code

async function operations(): Promise<{ id: string; tool: string; status: string }[]> {
  return (await host.api<{ operations: never[] }>('GET', `/api/operations?session=${ref}&limit=200`)).operations
}

describe('one key, one operation', () => {
  it('OP-01 OP-04 64 duplicates at once over three bridges have one effect, one operation, one answer', async () => {
    const others = await Promise.all(
      (['v2 legacy', 'v2 2026-07-28'] as const).map((era) => connectClient(host, connection, era, { session: ref })),
    )
    try {
      const clients = [client, ...others]
      const calls = Array.from({ length: 64 }, (_, i) => clients[i % 3]?.call('Edit', mark('same')))
      const answers = await Promise.all(calls)
      expect(count()).toBe(1)
      expect(new Set(answers.map((answer) => answer && id(answer))).size).toBe(1)
      expect(new Set(answers.map((answer) => answer?.content.at(-1)?.text)).size).toBe(1)
      expect(await operations()).toHaveLength(1)
    } finally {
      await Promise.all(others.map((other) => other.close()))
    }
  })

  it('OP-02 GU-10 key order, escapes, 1.0 and Kiki’s own object do not make another call; other arguments, tool or letters do', async () => {
    writeFileSync(join(host.workspace, 'é.txt'), '.')
    const first = await client.call('Edit', {
      path: 'é.txt',
      old_string: '.',
      new_string: '!.',
      expected_count: 1,
      _kiki: { idempotency_key: 'k' },
    })
    expect(first.isError, textOf(first)).toBeFalsy()
    // The SDK writes 1.0 as 1, so the reordered, escaped spelling goes over a bridge by hand.
    const same = await rawCall(
      `{"_kiki":{"wait_ms":1000,"idempotency_key":"k","session_ref":"${ref}"},"expected_count":1.0,"new_string":"\\u0021.","old_string":"\\u002e","path":"\\u00e9.txt"}`,
    )
    expect(id(same)).toBe(id(first))
    expect(meta(same, 'kiki/operation')).toMatchObject({ replayed: true })
    const base = {
      path: 'é.txt',
      old_string: '.',
      new_string: '!.',
      expected_count: 1,
      _kiki: { idempotency_key: 'k' },
    }
    const others: [string, Record<string, unknown>][] = [
      ['Edit', { ...base, expected_count: 2 }],
      ['Edit', { ...base, path: 'é.txt'.normalize('NFD') }],
      ['Edit', { path: 'é.txt', old_string: '.', new_string: '!.', _kiki: base._kiki }],
      ['Write', { path: 'é.txt', content: 'x', _kiki: base._kiki }],
    ]
    for (const [tool, args] of others) expect(code(await client.call(tool, args))).toBe('idempotency_conflict')
    expect(readFileSync(join(host.workspace, 'é.txt'), 'utf8')).toBe('!.')
  })

  it('GU-10 integers that cannot be told apart are refused before anything is claimed', async () => {
    const answer = await rawCall(
      `{"path":"count.txt","offset":9007199254740993,"_kiki":{"session_ref":"${ref}"}}`,
      'Read',
    )
    expect(code(answer)).toBe('invalid_arguments')
    expect(await operations()).toEqual([])
  })

  it('OP-02 GU-10 the key’s scope is connection and session: elsewhere it is a new key', async () => {
    await client.call('Edit', mark('scope'))
    const second = await host.session(connection)
    const elsewhere = await client.call('Edit', {
      ...mark('scope'),
      _kiki: { idempotency_key: 'scope', session_ref: second },
    })
    expect(elsewhere.isError).toBeFalsy()
    expect(meta(elsewhere, 'kiki/operation')).not.toHaveProperty('replayed')
    expect(count()).toBe(2)
  })

  it('OP-03 the refusal of a key used for another call names its tool and none of its arguments', async () => {
    await client.call('Write', {
      path: 'private-name.txt',
      content: 'private content',
      _kiki: { idempotency_key: 'k' },
    })
    const refused = await client.call('Edit', mark('k'))
    expect(code(refused)).toBe('idempotency_conflict')
    expect(textOf(refused)).toContain('Write')
    expect(JSON.stringify(refused)).not.toContain('private')
    expect(count()).toBe(0)
  })

  it('OP-06 a failure is replayed and does not run again, even if it would succeed now', async () => {
    const edit = { path: 'late.txt', old_string: 'a', new_string: 'b', _kiki: { idempotency_key: 'k' } }
    const failed = await client.call('Edit', edit)
    expect(code(failed)).toBe('not_found')
    writeFileSync(join(host.workspace, 'late.txt'), 'a')
    const again = await client.call('Edit', edit)
    expect(again.isError).toBe(true)
    expect(code(again)).toBe('not_found')
    expect(meta(again, 'kiki/operation')).toMatchObject({ operation_id: id(failed), status: 'failed', replayed: true })
    expect(again.content.slice(1)).toEqual(failed.content)
    expect(readFileSync(join(host.workspace, 'late.txt'), 'utf8')).toBe('a')
  })

  it('OP-06 GU-12 a call that was refused before it was claimed uses up no key', async () => {
    expect(code(await client.call('Edit', { ...mark('k'), unknown: 1 }))).toBe('invalid_arguments')
    await host.api('PATCH', `/api/sessions/${ref}`, { mode: 'manual' })
    expect(code(await client.call('Edit', mark('k')))).toBe('approval_unavailable')
    await host.api('PATCH', `/api/sessions/${ref}`, { mode: 'read-only' })
    expect(code(await client.call('Edit', mark('k')))).toBe('permission_denied')
    await host.api('PATCH', `/api/sessions/${ref}`, { mode: 'full' })
    expect(count()).toBe(0)
    expect(await operations()).toEqual([])
    expect((await client.call('Edit', mark('k'))).isError).toBeFalsy()
    expect(count()).toBe(1)
  })

  it('OP-05 a replay is authorised again: paused, narrowed and revoked connections get their refusal', async () => {
    await client.call('Edit', mark('k'))
    const refusal = async () => {
      const answer = await client.call('Edit', mark('k'))
      expect(answer.isError).toBe(true)
      expect(textOf(answer)).not.toContain('Replayed')
      return code(answer)
    }
    await host.api('POST', `/api/connections/${connection}/pause`)
    expect(await refusal()).toBe('connection_paused')
    await host.api('POST', `/api/connections/${connection}/resume`)
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { ceiling: 'read-only' } })
    expect(await refusal()).toBe('permission_denied')
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { ceiling: 'full', tools: ['search'] } })
    expect(await refusal()).toBe('tool_unavailable')
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { tools: ['files'] } })
    expect(textOf(await client.call('Edit', mark('k')))).toContain('Replayed')
    await host.api('POST', `/api/connections/${connection}/revoke`)
    await expect(client.call('Edit', mark('k'))).rejects.toThrow(REVOKED)
    expect(count()).toBe(1)
  })

  it('GU-13 another connection gets the same answers for a foreign ref, key and operation as for unknown ones', async () => {
    const mine = await client.call('Edit', mark('shared'))
    const stranger = await host.connection({}, 'stranger')
    const strange = await connectClient(host, stranger, 'v1')
    try {
      const tries = (session: string, operation: string) => [
        strange.call('Edit', { ...mark('shared'), _kiki: { idempotency_key: 'shared', session_ref: session } }),
        strange.call('kiki_session', { action: 'resume', session_ref: session }),
        strange.call('kiki_session', { action: 'close', session_ref: session }),
        strange.call('kiki_session', { action: 'new', session_ref: session, _kiki: { idempotency_key: 'shared' } }),
        strange.call('kiki_operation', { action: 'get', operation_id: operation }),
        strange.call('kiki_operation', { action: 'read', operation_id: operation }),
        strange.call('kiki_operation', { action: 'cancel', operation_id: operation }),
        strange.call('kiki_operation', { action: 'list', session_ref: session }),
      ]
      const foreign = await Promise.all(tries(ref, id(mine)))
      const unknown = await Promise.all(tries('ext_0000000000AAAAAAAAAAAAAAAA', 'op_0000000000AAAAAAAAAAAAAAAA'))
      expect(foreign).toEqual(unknown)
      expect(foreign.map(code)).toEqual([
        ...Array(4).fill('session_unavailable'),
        ...Array(3).fill('operation_unavailable'),
        'session_unavailable',
      ])
      expect(count()).toBe(1)
    } finally {
      await strange.close()
    }
  })

  it('OP-02 GR-02 a missing key is asked for with a fresh one, and made where the connection says auto', async () => {
    const missing = await client.call('Edit', mark())
    expect(code(missing)).toBe('idempotency_required')
    const offered = /"idempotency_key": "([^"]+)"/.exec(textOf(missing))?.[1]
    expect(offered).toMatch(/^[0-9a-f-]{36}$/)
    for (const [tool, args] of [
      ['kiki_session', { action: 'new', session_ref: ref }],
      ['kiki_save_text', { text: 'x', title: 'x', kind: 'note' }],
    ] as const) {
      expect(code(await client.call(tool, args))).toBe('idempotency_required')
    }
    await host.api('PATCH', `/api/connections/${connection}`, { grant: { idempotency: 'auto' } })
    for (const [tool, args] of [
      ['Edit', mark()],
      ['kiki_session', { action: 'new', session_ref: ref }],
      ['kiki_save_text', { text: 'x', title: 'x', kind: 'note' }],
    ] as const) {
      const made = await client.call(tool, args)
      expect(made.isError, textOf(made)).toBeFalsy()
      expect(textOf(made)).toContain('a retry of this call would run again')
    }
    expect(count()).toBe(1)
  })
})

/** One `tools/call` as these very bytes over a bridge of its own. */
async function rawCall(args: string, tool = 'Edit'): Promise<CallResult> {
  const { spawn } = await import('node:child_process')
  const { createInterface } = await import('node:readline')
  const { MAIN } = await import('../helpers/host.js')
  const bridge = spawn(process.execPath, [MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home])
  try {
    bridge.stdin.write(
      '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}\n' +
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n' +
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}\n`,
    )
    for await (const line of createInterface({ input: bridge.stdout })) {
      const message = JSON.parse(line) as { id?: number; result: CallResult }
      if (message.id === 1) return message.result
    }
    throw new Error('the bridge ended without an answer')
  } finally {
    bridge.stdin.end()
  }
}

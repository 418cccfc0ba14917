import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RawClient, startRaw } from '../bridge/raw-client.js'
import { MAIN, startHost, type TestHost } from '../helpers/host.js'
import { DIALOGUES, type Dialogue, type Message } from './dialogues.js'

let host: TestHost

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())

const LIST = 'tools/list'

/** Says the opening of a client, and returns the names of the tools that it is told of. */
async function open(client: RawClient, { opening }: Dialogue): Promise<string[]> {
  for (const message of opening) {
    client.send(message)
    if (message.method === 'subscriptions/listen')
      await client.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    else if (message.id !== undefined) await client.answer(message.id)
  }
  const list = opening.find(({ method }) => method === LIST)
  return toolsOf((await client.answer(list?.id ?? null)).result)
}

function toolsOf(result: Record<string, unknown> = { tools: [] }): string[] {
  return (result.tools as { name: string }[]).map(({ name }) => name)
}

async function call(client: RawClient, dialogue: Dialogue, id: number, tool: string, args: object) {
  client.send(dialogue.call(id, tool, args))
  const { result } = await client.answer(id)
  const after = dialogue.afterCall?.(id)
  if (after !== undefined) client.send(after)
  return result as { isError?: boolean; content: { text: string }[] }
}

async function end(client: RawClient, { ends }: Dialogue): Promise<number> {
  const began = performance.now()
  if (ends === 'stdin') client.child.stdin?.end()
  else client.child.kill(ends)
  await client.exit
  return performance.now() - began
}

describe.each(DIALOGUES)('$client.name $client.version, as it was recorded', (dialogue) => {
  const prepare = async () => {
    const connection = await host.connection({ ceiling: 'auto-edit' }, dialogue.client.name)
    const session = await host.session(connection)
    const file = join(host.workspace, `${dialogue.client.name}.txt`)
    writeFileSync(file, 'one\ntwo\n')
    const bridge = (...more: string[]) =>
      startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--no-start', '--home', host.home, ...more])
    return { connection, session, file, bridge }
  }
  const edit = (key: string, more: object = {}) => ({
    path: `${dialogue.client.name}.txt`,
    old_string: 'two',
    new_string: '2',
    _kiki: { ...more, idempotency_key: key },
  })

  it('CL-10 OP-02 with --session it lists the tools at once, edits once, is recorded by name, and leaves no bridge', async () => {
    const { connection, session, file, bridge } = await prepare()
    const client = bridge('--session', session)
    expect(await open(client, dialogue)).toEqual(expect.arrayContaining(['kiki_session', 'Read', 'Edit']))
    expect(await call(client, dialogue, 101, 'Edit', edit('k'))).not.toHaveProperty('isError')
    const again = await call(client, dialogue, 102, 'Edit', edit('k'))
    expect(again.content[0]?.text).toMatch(/^Replayed: nothing ran now/)
    expect(readFileSync(file, 'utf8')).toBe('one\n2\n')
    const { operations } = await host.api<{ operations: { tool: string; client: unknown; status: string }[] }>(
      'GET',
      `/api/operations?connection=${connection}`,
    )
    expect(operations).toMatchObject([{ tool: 'Edit', client: dialogue.client, status: 'completed' }])
    expect(await end(client, dialogue)).toBeLessThan(2000)
  })

  it('SE-02 SE-04 SE-05 without one it sees three tools, hears of the others at resume, and may use them', async () => {
    const { session, file, bridge } = await prepare()
    const client = bridge()
    expect(await open(client, dialogue)).toEqual(['kiki_session', 'kiki_operation', 'kiki_save_text'])
    await call(client, dialogue, 101, 'kiki_session', { action: 'resume', session_ref: session })
    await client.next(({ method }) => method === 'notifications/tools/list_changed')
    const list = dialogue.opening.find(({ method }) => method === LIST) as Message
    client.send({ ...list, id: 102 })
    expect(toolsOf((await client.answer(102)).result)).toEqual(expect.arrayContaining(['Read', 'Edit']))
    const edited = await call(client, dialogue, 103, 'Edit', edit('k', { session_ref: session }))
    expect(edited, edited.content[0]?.text).not.toHaveProperty('isError')
    expect(readFileSync(file, 'utf8')).toBe('one\n2\n')
    await end(client, dialogue)
  })
})

it('a parameter that one client adds for itself is unknown when another sends it', async () => {
  const connection = await host.connection({ ceiling: 'auto-edit' }, 'other')
  const session = await host.session(connection)
  const client = startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home, '--session', session])
  await client.open()
  const params = { name: 'List', arguments: { path: '.', wait_for_previous: true } }
  client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  expect((await client.answer(1)).result).toMatchObject({
    isError: true,
    _meta: { 'kiki/error': { code: 'invalid_arguments' } },
  })
  client.child.kill()
  await client.exit
})

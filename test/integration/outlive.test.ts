import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { call, type RawClient, startRaw } from '../bridge/raw-client.js'
import { callApi, MAIN } from '../helpers/host.js'
import {
  createWorld,
  type FaultyHost,
  grant,
  holdAt,
  spawnHost,
  startFaulty,
  stop,
  type World,
} from '../torture/world.js'

let world: World
let host: FaultyHost
let place: { connection: string; session: string }

beforeAll(async () => {
  world = createWorld()
  host = (await startFaulty(world, undefined, spawnHost(world))) as FaultyHost
})
afterAll(async () => {
  await stop(host)
  world.close()
})
beforeEach(async () => {
  place = await grant(host, world)
  writeFileSync(join(world.workspace, 'count.txt'), '.')
})

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

async function connect(era: string): Promise<RawClient> {
  const { connection, session } = place
  const client = startRaw([MAIN, 'mcp', '--client', connection, '--tools', '--home', world.home, '--session', session])
  if (era === '2025') await client.open()
  // Answered by the host, so that the stream is open.
  send(client, era, 'ready', 'kiki_session', { action: 'list' })
  await client.answer('ready')
  return client
}

function send(client: RawClient, era: string, id: string, name: string, args: object): void {
  const request = call(id, name, args)
  client.send(era === '2025' ? request : { ...request, params: { ...request.params, _meta: MODERN } })
}

const EDIT = { path: 'count.txt', old_string: '.', new_string: '!.', _kiki: { idempotency_key: 'k' } }

const ENDS: Record<string, (client: RawClient) => Promise<unknown>> = {
  'notifications/cancelled': (client) => {
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'edit' } })
    // The bridge answers this itself, so what came before has gone to the host.
    client.send('no message\n')
    return client.next(({ error }) => error?.code === -32700)
  },
  'a killed bridge': (client) => {
    client.child.kill('SIGKILL')
    return client.exit
  },
  'the end of standard input': (client) => {
    client.child.stdin?.end()
    return client.exit
  },
}
// After the claim is on disk, and when the effect is there and only its record is missing.
const CASES = ['2025', '2026'].flatMap((era) =>
  Object.keys(ENDS).flatMap((how) => [2, 3].map((at) => [era, how, at] as const)),
)

it.each(CASES)(
  'GU-20 OP-12 FC-T07 era %s: a side effect that has begun outlives %s (boundary %i), is recorded, and can be asked for',
  async (era, how, at) => {
    const client = await connect(era)
    const { held, release } = await holdAt(host, world, at)
    send(client, era, 'edit', 'Edit', EDIT)
    await held
    await ENDS[how]?.(client)
    release()
    const again = how === 'notifications/cancelled' ? client : await connect(era)
    send(again, era, 'again', 'Edit', EDIT)
    const replay = await again.answer('again')
    expect(replay.result?._meta).toMatchObject({ 'kiki/operation': { status: 'completed' } })
    expect(readFileSync(join(world.workspace, 'count.txt'), 'utf8')).toBe('!.')
    const path = `/api/operations?session=${place.session}`
    const { operations } = await callApi<{ operations: { id: string; status: string }[] }>(host.socket, 'GET', path)
    expect(operations).toMatchObject([{ status: 'completed' }])
    send(again, era, 'get', 'kiki_operation', { action: 'get', operation_id: operations[0]?.id })
    expect((await again.answer('get')).result?.structuredContent).toMatchObject({ status: 'completed' })
    again.child.kill('SIGKILL')
    client.child.kill('SIGKILL')
  },
)

import { join } from 'node:path'
import { connectClient } from '../helpers/clients.js'
import { callApi } from '../helpers/host.js'
import { createRandom } from '../helpers/random.js'
import { grant } from '../torture/world.js'
import { type BridgeLine, openBridgeLine } from './bridge-line.js'
import type { FuzzWorld } from './fuzz-world.js'
import { MODERN, messageOf, type ToolShape, wordsOf } from './messages.js'

const BATCH = 100
/** Everything of one batch is answered within this, in milliseconds, on a busy machine. */
const ANSWERED_MS = 30_000
const ERAS = ['2025', '2026'] as const
type Era = (typeof ERAS)[number]

export interface RunOptions {
  inputs: number
  seed: number
  say(text: string): void
}

/** GU-66 with lines of a client, half of them on a bridge of each era. @returns how many were sent. */
export async function fuzzBridges(fuzz: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const tools = await toolsOf(fuzz)
  let sent = 0
  for (const [at, era] of ERAS.entries()) {
    const random = createRandom(seed + at)
    let place = await openPlace(fuzz, era)
    while (sent < Math.ceil((inputs * (at + 1)) / ERAS.length)) {
      if (!(await isOpen(fuzz, place.session))) {
        await endPlace(fuzz, place)
        place = await openPlace(fuzz, era)
      }
      const words = wordsOf({ session: place.session, outside: join(fuzz.world.base, 'elsewhere.txt') })
      const lines: Buffer[] = []
      for (let i = 0; i < BATCH; i++) {
        const line = random.chance(0.02) && lines.length > 0 ? random.pick(lines) : undefined
        lines.push(line ?? messageOf(random, { era, tools, words }, sent + i + 1))
      }
      for (const line of lines) place.bridge.send(line)
      sent += BATCH
      await judge(fuzz, place, `JSON-RPC ${era}, seed ${seed}, message ${sent}`, lines)
      if (sent % 5000 === 0) say(`${sent} JSON-RPC messages`)
    }
    await endPlace(fuzz, place)
  }
  return sent
}

interface Place {
  bridge: BridgeLine
  era: Era
  session: string
}

async function openPlace({ host, world }: FuzzWorld, era: Era): Promise<Place> {
  const { connection, session } = await grant(host, world)
  const bridge = openBridgeLine(['--client', connection, '--tools', '--home', world.home, '--session', session])
  if (era === '2025') {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'fuzz', version: '1' } }
    bridge.send(JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'initialize', params }))
    await bridge.settled(ANSWERED_MS)
    bridge.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  } else {
    bridge.send(JSON.stringify({ jsonrpc: '2.0', id: 'open', method: 'server/discover', params: { _meta: MODERN } }))
    await bridge.settled(ANSWERED_MS)
  }
  return { bridge, era, session }
}

async function judge(fuzz: FuzzWorld, { bridge }: Place, after: string, lines: readonly Buffer[]): Promise<void> {
  const unanswered = await bridge.settled(ANSWERED_MS)
  const culprits = lines.filter((line) => unanswered.some((id) => line.includes(`"id":${id}`))).slice(0, 3)
  if (unanswered.length > 0)
    fuzz.faults.push(`not answered after ${after}: ${unanswered.join(' ')}: ${shown(culprits)}`)
  if (bridge.ended()) throw new Error(`a bridge ended after ${after}: ${bridge.stderr()}`)
  if (unanswered.length > 0) throw new Error(fuzz.faults.join('\n'))
  await fuzz.check(after)
}

const shown = (lines: readonly Buffer[]) =>
  lines.map((line) => JSON.stringify(line.toString().slice(0, 600))).join('\n')

async function endPlace({ faults }: FuzzWorld, { bridge }: Place): Promise<void> {
  await bridge.close()
  faults.push(...bridge.surplus())
  if (/^\s+at /m.test(bridge.stderr())) faults.push(`a bridge wrote: ${bridge.stderr().slice(0, 1000)}`)
}

async function isOpen({ host }: FuzzWorld, session: string): Promise<boolean> {
  return (await callApi<{ status: string }>(host.socket, 'GET', `/api/sessions/${session}`)).status === 'open'
}

async function toolsOf({ host, world }: FuzzWorld): Promise<ToolShape[]> {
  const { connection, session } = await grant(host, world)
  const client = await connectClient(world, connection, 'v1', { session })
  try {
    return (await client.definitions()) as ToolShape[]
  } finally {
    await client.close()
  }
}

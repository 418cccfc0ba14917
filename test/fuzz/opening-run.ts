import { createRandom } from '../helpers/random.js'
import { openStream, upgrade } from '../helpers/stream.js'
import { grant } from '../torture/world.js'
import type { RunOptions } from './bridge-run.js'
import type { FuzzWorld } from './fuzz-world.js'
import { messageOf, wordsOf } from './messages.js'
import { mutateBytes } from './mutate.js'

const BATCH = 50
const TOOLS = [{ name: 'Read', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } }]

/**
 * GU-66 with the first lines of streams that no bridge stands before: nothing of them is an opening, or nearly so, and many end
 * within a line. @returns how many lines were sent.
 */
export async function fuzzOpenings(fuzz: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const random = createRandom(seed)
  const place = await grant(fuzz.host, fuzz.world)
  const words = wordsOf({ session: place.session, outside: 'elsewhere.txt' })
  // Its credential is good for the others.
  const first = await openStream(fuzz.host.socket, { ...place, bridge: 'bridge_openings' })
  let { credential } = first
  let sent = 0
  while (sent < inputs) {
    for (let i = 0; i < BATCH; ) {
      const { status, socket } = await upgrade(fuzz.host.socket, credential, place.session)
      if (status !== 101) throw new Error(`a stream was refused with ${status}`)
      const gone = new Promise<void>((resolve) => socket.on('close', () => resolve()))
      socket.on('error', () => {}).resume()
      const lines = Array.from({ length: 1 + random.below(5) }, () =>
        messageOf(random, { era: random.pick(['2025', '2026']), tools: TOOLS, words }, ++i),
      )
      const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
      socket.end(random.chance(0.3) ? mutateBytes(random, bytes) : bytes)
      await gone
      sent += lines.length
    }
    await fuzz.check(`openings, seed ${seed}, line ${sent}`)
    const again = await openStream(fuzz.host.socket, { ...place, bridge: 'bridge_openings' })
    credential = again.credential
    again.close()
    if (sent % 5000 < BATCH) say(`${sent} lines of streams without a bridge`)
  }
  first.close()
  return sent
}

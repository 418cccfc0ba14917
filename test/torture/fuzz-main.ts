import { fuzzBridges } from '../fuzz/bridge-run.js'
import { openFuzzWorld } from '../fuzz/fuzz-world.js'
import type { TortureOptions, TortureResult } from './main.js'
import { heapOf } from './world.js'

export async function main({ inputs, seed, say }: Pick<TortureOptions, 'inputs' | 'seed' | 'say'>): Promise<TortureResult> {
  const fuzz = await openFuzzWorld()
  const sent = await fuzzBridges(fuzz, { inputs, seed, say })
  say(String(await heapOf(fuzz.host)))
  await fuzz.close()
  return { figures: [['x', sent]], faults: fuzz.faults }
}

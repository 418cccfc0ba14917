import { fuzzBridges, type RunOptions } from '../fuzz/bridge-run.js'
import { fuzzConfigs } from '../fuzz/config-run.js'
import { fuzzEdits } from '../fuzz/edit-run.js'
import { type FuzzWorld, openFuzzWorld } from '../fuzz/fuzz-world.js'
import { fuzzOpenings } from '../fuzz/opening-run.js'
import { fuzzOwnerApi } from '../fuzz/owner-run.js'
import { fuzzPatches } from '../fuzz/patch-run.js'
import type { TortureOptions, TortureResult } from './main.js'
import { heapOf } from './world.js'

/** Growth of the heap in use, from the first tenth of the inputs to their end, that is still called bounded, in MiB. What edits add is compiled code (a snapshot). */
const HEAP_MIB = 16

type Run = (fuzz: FuzzWorld, options: RunOptions) => Promise<number>

/** What is fed, and which share of all inputs it is; patches are as many again. */
const RUNS: readonly [what: string, share: number, run: Run][] = [
  ['lines of a client over real bridges of both eras', 0.48, fuzzBridges],
  ['first lines of streams without a bridge', 0.02, fuzzOpenings],
  ['requests of the owner API over its socket and its listener', 0.25, fuzzOwnerApi],
  ['configuration files', 0.15, fuzzConfigs],
  ['edits of Edit and MultiEdit', 0.1, fuzzEdits],
  ['patches of ApplyPatch', 1, fuzzPatches],
]

/** GU-66: random and mutated input everywhere; the same seed gives the same input, but for the ids of the home. */
export async function main({
  inputs,
  seed,
  say,
}: Pick<TortureOptions, 'inputs' | 'seed' | 'say'>): Promise<TortureResult> {
  const began = performance.now()
  const fuzz = await openFuzzWorld()
  const figures: TortureResult['figures'] = []
  const once = async (total: number, from: number) => {
    const counts: number[] = []
    for (const [, share, run] of RUNS)
      counts.push(await run(fuzz, { inputs: Math.ceil(total * share), seed: from, say }))
    return { counts, heap: await heapOf(fuzz.host) }
  }
  const first = await once(inputs / 10, seed)
  say(`heap ${first.heap.toFixed(1)} MiB`)
  const rest = await once((inputs * 9) / 10, seed + 1)
  await fuzz.close()
  for (const [at, [what]] of RUNS.entries()) figures.push([what, (first.counts[at] ?? 0) + (rest.counts[at] ?? 0)])
  const growth = rest.heap - first.heap
  if (growth > HEAP_MIB) fuzz.faults.push(`the heap grew by ${growth.toFixed(1)} MiB`)
  figures.push(
    [
      'heap of the host in use in MiB, after a tenth and at the end',
      `${first.heap.toFixed(1)} and ${rest.heap.toFixed(1)}`,
    ],
    ['seconds', Math.round((performance.now() - began) / 1000)],
  )
  return { figures, faults: fuzz.faults }
}

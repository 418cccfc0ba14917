import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectClient } from '../helpers/clients.js'
import type { TortureOptions, TortureResult } from './main.js'
import { createWorld, grant, heapOf, spawnHost, startFaulty, stop } from './world.js'

/** Growth of the heap in use, from a tenth of the calls to their end, that is still called flat, in MiB: 84 bytes a call for 100,000. */
const HEAP_MIB = 8
const PARALLEL = 16

/** Many calls through one host: three plain reads to one keyed edit. */
export async function main({ calls, say }: Pick<TortureOptions, 'calls' | 'say'>): Promise<TortureResult> {
  const world = createWorld()
  try {
    const host = await startFaulty(world, undefined, spawnHost(world, undefined, ['--expose-gc']))
    if (host === undefined) throw new Error('the host did not start')
    const { connection, session } = await grant(host, world)
    const client = await connectClient(world, connection, 'v1', { session })
    const seen: number[] = []
    let failed = 0
    let next = 0
    const began = performance.now()
    const worker = async (w: number) => {
      const path = `${w}.txt`
      writeFileSync(join(world.workspace, path), '.')
      for (let i = next++; i < calls; i = next++) {
        const edit = {
          path,
          old_string: '.',
          new_string: i % 8 === 0 ? '!.' : '?.',
          expected_count: 1,
          _kiki: { idempotency_key: `${i}` },
        }
        if (i % 400 === 0) writeFileSync(join(world.workspace, path), '.')
        const result = await client.call(i % 4 === 0 ? 'Edit' : 'Read', i % 4 === 0 ? edit : { path })
        if (result.isError) failed++
        if ((i + 1) % Math.ceil(calls / 10) !== 0) continue
        seen.push(await heapOf(host))
        say(`${i + 1} calls: ${seen.at(-1)?.toFixed(1)} MiB`)
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, (_, w) => worker(w)))
    const seconds = (performance.now() - began) / 1000
    await client.close()
    await stop(host)
    const growth = (seen.at(-1) ?? 0) - (seen[0] ?? 0)
    const faults: string[] = []
    if (growth > HEAP_MIB) faults.push(`the heap grew by ${growth.toFixed(1)} MiB after the first tenth`)
    if (failed > 0) faults.push(`${failed} calls failed`)
    return {
      figures: [
        ['calls through one host (a quarter of them keyed edits)', calls],
        ['heap of the host in use in MiB at each tenth', seen.map((mib) => mib.toFixed(1)).join(', ')],
        ['calls a second', Math.round(calls / seconds)],
      ],
      faults,
    }
  } finally {
    world.close()
  }
}

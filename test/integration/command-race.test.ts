import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Bench, commandBench, factsOf, textOf } from './command-bench.js'

let host: TestHost
let at: Bench
beforeAll(async () => {
  host = await startHost()
  at = await commandBench(host, { ceiling: 'full' })
})
afterAll(async () => {
  await at.client.close()
  await host.stop()
})

const SWAPS = 10_000
/** Makes of a folder a link that leads out, and a folder again, as fast as it can. */
const SWAPPER = `
import { renameSync, rmSync, symlinkSync } from 'node:fs'
symlinkSync(process.argv[2], 'd-link')
// Between two steps nothing is there, and a Write makes the folder that it misses.
const move = (from, to) => {
  for (;;) {
    try {
      return renameSync(from, to)
    } catch (error) {
      if (!['EISDIR', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
      rmSync(to, { recursive: true, force: true })
    }
  }
}
for (let swap = 0; swap < ${SWAPS}; swap++) {
  move('d', 'd-folder')
  move('d-link', 'd')
  move('d', 'd-link')
  move('d-folder', 'd')
}
console.log('swapped')
`

it('GU-50 FC-P07 FC-P15 a command that swaps a folder for a link out leads the file tools nowhere', {
  timeout: 180_000,
}, async () => {
  const out = join(host.base, 'out')
  mkdirSync(out)
  writeFileSync(join(out, 'f'), 'canary 4711')
  mkdirSync(join(host.workspace, 'd'))
  writeFileSync(join(host.workspace, 'd', 'f'), 'inside')
  writeFileSync(join(host.workspace, 'swap.mjs'), SWAPPER)
  const started = await at.bash(`node swap.mjs ${out}`, { background: true })
  const { process_id } = factsOf(started) as { process_id: string }
  let over = false
  const counts = { done: 0, refused: 0 }
  const work = async (name: string, args: Record<string, unknown>) => {
    while (!over) {
      const result = await at.call(name, args)
      counts[result.isError === true ? 'refused' : 'done'] += 1
      if (textOf(result).includes('canary')) throw new Error(`${name} read outside: ${textOf(result)}`)
    }
  }
  const tools = Promise.all([
    work('Write', { path: 'd/f', content: 'inside\n' }),
    work('Write', { path: 'd/new', content: 'inside\n' }),
    work('Read', { path: 'd/f' }),
    work('Grep', { pattern: '47.1', path: 'd' }),
    work('Delete', { path: 'd/new' }),
  ])
  for (let status: unknown = 'running'; status === 'running'; ) {
    status = factsOf(await at.call('ProcessOutput', { process_id, cursor: 1_000_000, wait_ms: 5000 })).status
  }
  over = true
  await tools
  expect(factsOf(await at.call('ProcessOutput', { process_id })).text).toBe('swapped\n')
  expect(readdirSync(out)).toEqual(['f'])
  expect(readFileSync(join(out, 'f'), 'utf8')).toBe('canary 4711')
  expect(counts.done).toBeGreaterThan(0)
  expect(counts.refused).toBeGreaterThan(0)
})

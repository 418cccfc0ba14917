import { afterEach, expect, it } from 'vitest'
import type { Processes, RunOptions } from '../../../src/processes/processes.js'
import { createSandbox } from '../../helpers/tool-context.js'
import { call, createSearch, fill, tools } from './search-context.js'

const search = createSearch()
const sandbox = createSandbox()
afterEach(async () => {
  await search.close()
  sandbox.remove()
})

it('GU-61 ripgrep, which finds all the same, is given a locale and nothing of the host’s environment', async () => {
  const started: RunOptions[] = []
  const processes: Processes = {
    ...search.processes,
    run(options) {
      started.push(options)
      return search.processes.run(options)
    },
  }
  fill(sandbox, { 'a.txt': 'needle\n', 'b/c.txt': 'needle\n' })
  const found = await call(tools.grep, sandbox, processes, { pattern: 'needle' })
  await call(tools.glob, sandbox, processes, { pattern: '**/*.txt' })
  expect(found.text).toContain('a.txt')
  expect(started.length).toBeGreaterThan(0)
  for (const { argv, env } of started) {
    expect(argv).toContain('--no-config')
    expect(env).toEqual({ LANG: 'C.UTF-8' })
  }
})

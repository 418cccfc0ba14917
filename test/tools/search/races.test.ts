import { spawn } from 'node:child_process'
import { readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Processes } from '../../../src/processes/processes.js'
import { createSandbox, refusal, type Sandbox } from '../../helpers/tool-context.js'
import { launcherPid } from '../../processes/harness.js'
import { call, createSearch, fill, tools } from './search-context.js'

let search: ReturnType<typeof createSearch>
let sandbox: Sandbox

beforeAll(() => {
  search = createSearch()
})
afterAll(() => search.close())
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

/** What the launcher's children run now. */
function running(): string[] {
  const launcher = launcherPid(search.launcherPath)
  const pids = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'latin1').trim().split(' ').filter(Boolean)
  return pids.map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
}

it('SR-03 GU-21 a cancelled Grep ends within 1 s and leaves no process', async () => {
  // Far more work than a second for any machine: every position begins a long attempt.
  for (let i = 0; i < 8; i++) fill(sandbox, { [`f${i}.txt`]: `${'ab'.repeat(60)}\n`.repeat(300_000) })
  const controller = new AbortController()
  const args = { pattern: '(?:[ab]{1,40}){20,40}c|(?:a|b|ab){30,60}d', output_mode: 'count' }
  const grep = call(tools.grep, sandbox, search.processes, args, { signal: controller.signal })
  const refused = refusal(() => grep)
  await expect.poll(() => safely(running).join(), { timeout: 4000, interval: 5 }).toContain('--count')
  const before = performance.now()
  controller.abort()
  expect((await refused).code).toBe('cancelled')
  expect(performance.now() - before).toBeLessThan(3000)
  expect(running()).toEqual([])
}, 20_000)

/** A process may end between the two looks at /proc. */
function safely(look: () => string[]): string[] {
  try {
    return look()
  } catch {
    return []
  }
}

it('SR-03 a cancelled Glob starts nothing and says so', async () => {
  const error = await refusal(() =>
    call(tools.glob, sandbox, search.processes, { pattern: '**' }, { signal: AbortSignal.abort() }),
  )
  expect(error.code).toBe('cancelled')
})

it('SR-03 a wide search does not block the host', async () => {
  const files = Array.from({ length: 3000 }, (_, i) => [`d${i % 50}/f${i}.txt`, 'hit\n'.repeat(5)])
  fill(sandbox, Object.fromEntries(files))
  await call(tools.grep, sandbox, search.processes, { pattern: 'hit', limit: 1 })
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const [content, names] = await Promise.all([
    call(tools.grep, sandbox, search.processes, { pattern: 'hit', limit: 4000 }),
    call(tools.glob, sandbox, search.processes, { pattern: '**/*.txt' }),
  ])
  delay.disable()
  expect(content.facts.matches).toBe(4000)
  expect(names.facts.total).toBe(3000)
  expect(delay.max / 1e6).toBeLessThan(2000)
}, 20_000)

it('PA-02 SR-03 a folder swapped for a link out during the search shows nothing from outside', async () => {
  const filler = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`d/f${i}.txt`, 'needle INSIDE\n']))
  fill(sandbox, filler)
  for (let i = 0; i < 200; i++) writeFileSync(path.join(sandbox.out, `f${i}.txt`), 'needle SECRET\n')
  for (let i = 0; i < 20; i++) writeFileSync(path.join(sandbox.out, `hidden-name-${i}.txt`), 'needle SECRET\n')
  const swapper = spawn(
    process.execPath,
    [path.resolve(import.meta.dirname, '../../fixtures/swap-folder.mjs'), path.join(sandbox.root, 'd'), sandbox.out],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  try {
    await new Promise((resolve) => swapper.stdout.once('data', resolve))
    let shown = 0
    for (let round = 0; round < 60; round++) {
      for (const output_mode of ['content', 'files']) {
        const { text, facts } = await call(tools.grep, sandbox, search.processes, { pattern: 'needle', output_mode })
        expect(text).not.toMatch(/SECRET|hidden-name/)
        shown += Number(facts.files)
      }
      const { text } = await call(tools.glob, sandbox, search.processes, { pattern: '**/*.txt' })
      expect(text).not.toContain('hidden-name')
    }
    expect(shown).toBeGreaterThan(0)
  } finally {
    swapper.kill('SIGKILL')
  }
}, 60_000)

it('PA-02 what ripgrep read elsewhere is left out, though the file by that name is there', async () => {
  fill(sandbox, { 'd/a.txt': 'needle INSIDE\n', 'd/b.txt': 'needle INSIDE\n' })
  // ripgrep as a swap would make it: it saw another a.txt, whose line is not in the workspace's file.
  const lied: Processes = {
    close: () => search.processes.close(),
    run: (options) =>
      search.processes.run({
        ...options,
        onStdout: (chunk) => options.onStdout(Buffer.from(chunk.toString().replace('needle INSIDE', 'needle SECRET'))),
      }),
  }
  const { text, facts } = await call(tools.grep, sandbox, lied, { pattern: 'needle' })
  expect(text).not.toContain('SECRET')
  expect(text).toContain('1 match left out: changed during the search.')
  expect(facts).toEqual({ matches: 1, files: 1, truncated: false })
})

it('PA-02 a held folder is searched wherever its path leads by then', async () => {
  fill(sandbox, { 'd/a.txt': 'needle INSIDE\n' })
  writeFileSync(path.join(sandbox.out, 'a.txt'), 'needle SECRET\n')
  const seen: string[] = []
  const swapping: Processes = {
    close: () => search.processes.close(),
    run(options) {
      renameSync(path.join(sandbox.root, 'd'), path.join(sandbox.root, 'moved'))
      symlinkSync(sandbox.out, path.join(sandbox.root, 'd'))
      return search.processes.run({
        ...options,
        onStdout(chunk) {
          seen.push(chunk.toString())
          return options.onStdout(chunk)
        },
      })
    },
  }
  const { text } = await call(tools.grep, sandbox, swapping, { pattern: 'needle', path: 'd' })
  expect(text).not.toContain('SECRET')
  // Already ripgrep saw the folder that was held.
  expect(seen.join()).toContain('needle INSIDE')
  expect(seen.join()).not.toContain('SECRET')
})

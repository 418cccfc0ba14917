import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLog } from '../../src/lib/log.js'
import { createProcesses } from '../../src/processes/processes.js'
import { createWorktrees } from '../../src/sessions/worktrees.js'
import { createHomeFence } from '../../src/workspace/fence.js'
import { type Core, openCore } from '../operations/harness.js'

let core: Core
beforeEach(async () => {
  core = await openCore()
})
afterEach(() => core.close())

/** As a host of this home makes them, with its log in a file. */
function worktreesOf(folder: string) {
  const log = createLog({ file: join(core.base, 'log') }, 'info')
  const processes = createProcesses({ dir: join(core.base, 'run'), log, env: process.env })
  const fence = createHomeFence(join(core.base, 'home'))
  const deps = { ...core, log, processes, fence, env: process.env, folder }
  return { ...createWorktrees(deps), log }
}

it('SE-10 GU-05 what a dead host had not begun is forgotten, and what it left half made is kept and said', async () => {
  const worktrees = worktreesOf(join(core.base, 'data'))
  const half = join(core.base, 'half')
  const none = join(core.base, 'none')
  mkdirSync(half)
  for (const path of [half, none])
    core.store.worktrees.begin({ path, repository: core.base, branch: 'b', created_at: core.clock.now() })
  await worktrees.settle()
  await worktrees.log.close()
  expect(core.store.worktrees.unfinished()).toEqual([half])
  expect(readFileSync(join(core.base, 'log'), 'utf8')).toContain(half)
  expect(await worktrees.release(half)).toMatchObject({ kept: true, why: 'it was not made to the end' })
})

it("SE-10 worktrees stand neither in Kiki's home nor in the repository itself", async () => {
  const { workspace } = core.session
  for (const [folder, says] of [
    [join(core.base, 'home/worktrees'), /own home/],
    [join(workspace, 'data'), /inside the repository itself/],
    [workspace, /inside the repository itself/],
  ] as const) {
    await expect(worktreesOf(folder).make(workspace, 'b'), folder).rejects.toThrow(says)
  }
  expect(core.store.worktrees.unfinished()).toEqual([])
})

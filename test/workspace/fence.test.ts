import { spawnSync } from 'node:child_process'
import { closeSync, linkSync, mkdirSync, openSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { list } from '../../src/tools/files/list.js'
import { write } from '../../src/tools/files/write.js'
import { openDirectory, openFile } from '../../src/workspace/files.js'
import { moveFile } from '../../src/workspace/move.js'
import { removeFile } from '../../src/workspace/remove.js'
import { openWorkspace } from '../../src/workspace/workspace.js'
import { createSandbox, refusal, type Sandbox } from '../helpers/tool-context.js'

const TRY_LOCK = createRequire(import.meta.url).resolve('../fixtures/try-lock.mjs')

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox({ homeInside: true })
  mkdirSync(join(sandbox.home, 'keys'))
  writeFileSync(join(sandbox.home, 'keys', 'k'), 'key')
  mkdirSync(join(sandbox.root, 'src'))
  writeFileSync(join(sandbox.root, 'src', 'a'), 'a')
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)

async function expectRefused(path: string): Promise<void> {
  const context = sandbox.context()
  for (const action of [
    () => openFile(context.workspace, path),
    () => write.run(context, { path, content: 'x', keep_format: true }),
    () => removeFile(context, path),
    () => moveFile(context, path, 'stolen'),
    () => moveFile(context, 'src/a', path, { overwrite: true }),
  ]) {
    expect((await refusal(action)).code, path).toBe('path_denied')
  }
}

it('PA-03 the home inside the workspace is refused by every spelling, and what is beside it works (FC-S04)', async () => {
  symlinkSync(sandbox.home, at('src', 'k'))
  symlinkSync('../.kiki/keys', at('src', 'keys'))
  for (const path of ['.kiki/keys/k', at('.kiki', 'new'), 'src/../.kiki/keys/k', 'src/k/keys/k', 'src/keys/k']) {
    await expectRefused(path)
  }
  for (const path of ['.kiki/keys/k', 'src/k/keys/k', at('.kiki', 'new')]) {
    const { message } = await refusal(() => openFile(sandbox.context().workspace, path))
    expect(message).toBe(`"${path}" belongs to Kiki's own home, which no tool may touch.`)
  }
  expect((await refusal(() => openDirectory(sandbox.context().workspace, '.kiki'))).code).toBe('path_denied')
  expect((await refusal(() => openFile(sandbox.context().workspace, '/proc/self/cwd/x'))).code).toBe('path_denied')
  const result = await write.run(sandbox.context(), { path: 'src/b', content: 'b', keep_format: true })
  expect(result.facts).toMatchObject({ created: true })
  expect(readdirSync(join(sandbox.home, 'keys'))).toEqual(['k'])
})

it('PA-03 the home is known by its identity, not by its name (FC-P14)', async () => {
  // As another letter case or a bind mount would give it: the path differs, only device and inode tell.
  const workspace = { ...sandbox.context().workspace, home: '/another/spelling' }
  expect((await refusal(() => openFile(workspace, '.kiki/keys/k'))).code).toBe('path_denied')
})

it('PA-03 a hard link to a file of the home is refused, also to one that was made or replaced a moment ago', async () => {
  linkSync(join(sandbox.home, 'keys', 'k'), at('src', 'hard'))
  await expectRefused('src/hard')
  for (const turn of [1, 2, 3]) {
    writeFileSync(join(sandbox.home, 'keys', `fresh-${turn}`), 'new')
    linkSync(join(sandbox.home, 'keys', `fresh-${turn}`), at('src', `hard-${turn}`))
    await expectRefused(`src/hard-${turn}`)
  }
  writeFileSync(at('src', 'own'), 'own')
  linkSync(at('src', 'own'), at('src', 'twin'))
  openFile(sandbox.context().workspace, 'src/twin').close()
})

it('PA-03 a folder that holds the home, or a link to a file of it, is neither removed nor moved', async () => {
  const above = createSandbox({ homeInside: true })
  const outer = openWorkspace({ root: above.base, dirs: [], home: above.fence })
  const context = above.context({ workspace: outer })
  expect((await refusal(() => removeFile(context, 'ws', { recursive: true }))).code).toBe('path_denied')
  expect((await refusal(() => moveFile(context, 'ws', 'ws2'))).code).toBe('path_denied')
  expect(readdirSync(above.base).sort()).toEqual(['out', 'ws'])
  above.remove()
  mkdirSync(at('dir', 'deep'), { recursive: true })
  writeFileSync(at('dir', 'kept'), 'kept')
  linkSync(join(sandbox.home, 'keys', 'k'), at('dir', 'deep', 'hard'))
  const removal = await refusal(() => removeFile(sandbox.context(), 'dir', { recursive: true }))
  expect(removal.code).toBe('path_denied')
  expect(readdirSync(at('dir')).sort()).toEqual(['deep', 'kept'])
})

it('PA-03 List says that the home was skipped (FC-S04)', async () => {
  const result = await list.run(sandbox.context(), { path: '.', depth: 3, limit: 500, offset: 0 })
  const [block] = result.content
  expect(block?.type === 'text' && block.text).toContain('skipped')
  expect(block?.type === 'text' && block.text).not.toContain('keys')
  expect(result.facts).toMatchObject({ home_skipped: true, total: 2 })
})

it('GU-40 no tool opens a file of the home: the locks of a database in it hold', async () => {
  const path = join(sandbox.home, 'kiki.db')
  const db = new Database(path)
  db.exec('CREATE TABLE t (x)')
  db.exec('BEGIN EXCLUSIVE')
  const lock = () => spawnSync(process.execPath, [TRY_LOCK, path], { encoding: 'utf8' }).stdout.trim()
  try {
    expect(lock()).toBe('held')
    linkSync(path, at('src', 'db'))
    symlinkSync(path, at('src', 'link'))
    for (const name of ['src/db', '.kiki/kiki.db']) await expectRefused(name)
    const context = sandbox.context()
    expect((await refusal(() => openFile(context.workspace, 'src/link'))).code).toBe('path_denied')
    await refusal(() => removeFile(sandbox.context(), 'src', { recursive: true }))
    await list.run(sandbox.context(), { path: '.', depth: 5, limit: 500, offset: 0 })
    expect(lock()).toBe('held')
    // The oracle is sharp: one open and close in this process drops the lock.
    closeSync(openSync(path, 'r'))
    expect(lock()).toBe('free')
  } finally {
    db.close()
  }
})

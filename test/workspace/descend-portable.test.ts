import { closeSync, constants, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Held } from '../../src/workspace/descend.js'
import { descendPortable } from '../../src/workspace/descend-portable.js'
import { createSandbox, refusal, type Sandbox } from '../helpers/tool-context.js'

// The walk of platforms without /proc/self/fd, on this platform's real files.

let sandbox: Sandbox
let root: Held
beforeEach(() => {
  sandbox = createSandbox()
  mkdirSync(join(sandbox.root, 'd'))
  writeFileSync(join(sandbox.root, 'd', 'f'), 'inside')
  writeFileSync(join(sandbox.out, 'f'), 'outside')
  const held = descendPortable.openRoot(sandbox.root)
  if (held === undefined) throw new Error('the root did not open')
  root = held
})
afterEach(() => {
  closeSync(root.fd)
  sandbox.remove()
})

it('PA-02 without descriptors to walk by, a file is verified after it was opened and before a byte is used', async () => {
  const folder = descendPortable.openNode(root, 'd')
  if (folder?.fd === undefined) throw new Error('the folder was not held')
  const held: Held = { fd: folder.fd, path: join(root.path, 'd'), stat: folder.stat }
  const node = descendPortable.openNode(held, 'f')
  if (node === undefined) throw new Error('the file was not found')
  const fd = descendPortable.reopen(held, 'f', node, constants.O_RDONLY)
  expect(readFileSync(fd, 'utf8')).toBe('inside')
  closeSync(fd)
  renameSync(held.path, `${held.path}-away`)
  symlinkSync(sandbox.out, held.path)
  expect(descendPortable.stillThere(held)).toBe(false)
  expect((await refusal(() => descendPortable.reopen(held, 'f', node, constants.O_RDONLY))).code).toBe('conflict')
  closeSync(held.fd)
})

it('PA-02 without descriptors to walk by, links are found but not followed, and a swapped root does not open', () => {
  symlinkSync(sandbox.out, join(sandbox.root, 'link'))
  expect(descendPortable.openNode(root, 'link')?.stat.isSymbolicLink()).toBe(true)
  expect(descendPortable.openNode(root, 'none')).toBeUndefined()
  expect(descendPortable.openRoot(join(sandbox.root, 'link'))).toBeUndefined()
})

import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { move } from '../../../src/tools/files/move.js'
import { journalContent } from '../../../src/workspace/journal.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox({ extraDirs: ['extra'] })
  mkdirSync(join(sandbox.root, 'd'))
  writeFileSync(join(sandbox.root, 'd', 'a'), 'a')
  writeFileSync(join(sandbox.root, 'b'), 'b')
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const run = (args: Record<string, unknown>, context = sandbox.context()) => runTool(move, context, args)

it('FI-12 Move renames a file, makes missing folders, and is recorded', async () => {
  const context = sandbox.context()
  const { facts } = await run({ from: 'b', to: 'new/deep/c' }, context)
  expect(facts).toEqual({ from: 'b', to: 'new/deep/c', type: 'file', replaced: false })
  expect(readFileSync(at('new/deep/c'), 'utf8')).toBe('b')
  expect(existsSync(at('b'))).toBe(false)
  expect(context.journal.records().map((record) => record.kind)).toEqual(['mkdir', 'mkdir', 'move'])
  expect(context.journal.records().at(-1)).toMatchObject({ path: at('b'), to: at('new/deep/c') })
})

it('FI-12 a folder and a link are moved as they are, also to an extra directory', async () => {
  symlinkSync('d/a', at('link'))
  await run({ from: 'd', to: 'e' })
  expect(readdirSync(at('e'))).toEqual(['a'])
  await run({ from: 'link', to: join(sandbox.base, 'extra', 'link') })
  expect(lstatSync(join(sandbox.base, 'extra', 'link')).isSymbolicLink()).toBe(true)
})

it('FI-12 nothing is replaced without overwrite; with it, what was there is kept', async () => {
  expect((await refusal(() => run({ from: 'b', to: 'd/a' }))).hint).toContain('overwrite')
  expect(readFileSync(at('d/a'), 'utf8')).toBe('a')
  const context = sandbox.context()
  expect((await run({ from: 'b', to: 'd/a', overwrite: true }, context)).facts).toMatchObject({ replaced: true })
  expect(readFileSync(at('d/a'), 'utf8')).toBe('b')
  expect(context.journal.records().map((record) => record.kind)).toEqual(['delete', 'move'])
  expect(journalContent(sandbox.journalDir, context.operationId, 0)?.toString()).toBe('a')
})

it('FI-12 what cannot be right is refused: onto a folder, into itself, onto itself, its own hard link, the root', async () => {
  linkSync(at('b'), at('twin'))
  for (const [from, to, code] of [
    ['b', 'd', 'conflict'],
    ['d', 'd/inner/d', 'invalid_arguments'],
    ['b', './b', 'invalid_arguments'],
    ['b', 'twin', 'conflict'],
    ['d', 'b', 'conflict'],
    ['.', 'x', 'path_denied'],
    ['none', 'x', 'not_found'],
    [join(sandbox.base, 'extra'), 'x', 'path_denied'],
  ]) {
    expect((await refusal(() => run({ from, to, overwrite: true }))).code, `${from} to ${to}`).toBe(code)
  }
  expect(readdirSync(sandbox.root).sort()).toEqual(['b', 'd', 'twin'])
  expect(readdirSync(at('d'))).toEqual(['a'])
})

it('FI-12 PA-02 nothing moves in from outside or out', async () => {
  writeFileSync(join(sandbox.out, 's'), 's')
  symlinkSync(sandbox.out, at('out'))
  for (const args of [
    { from: '../out/s', to: 's' },
    { from: 'out/s', to: 's' },
    { from: 'b', to: 'out/b' },
    { from: 'b', to: '../out/b' },
  ]) {
    expect((await refusal(() => run(args))).code).toBe('path_denied')
  }
  expect(readdirSync(sandbox.out)).toEqual(['s'])
})

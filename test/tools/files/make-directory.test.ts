import { readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeDirectory } from '../../../src/tools/files/make-directory.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

it('FI-12 MakeDirectory makes what is missing, records each folder, and leaves one that is there', async () => {
  const context = sandbox.context()
  expect(await runTool(makeDirectory, context, { path: 'a/b/c/' })).toEqual({
    text: 'Made a, a/b, a/b/c.',
    facts: { path: 'a/b/c', made: ['a', 'a/b', 'a/b/c'] },
  })
  expect(context.journal.records().map((record) => record.kind)).toEqual(['mkdir', 'mkdir', 'mkdir'])
  const again = sandbox.context()
  expect((await runTool(makeDirectory, again, { path: 'a/b' })).facts).toEqual({ path: 'a/b', made: [] })
  expect(again.journal.records()).toEqual([])
})

it('FI-12 PA-02 a file in the way and a link out are refused', async () => {
  writeFileSync(join(sandbox.root, 'f'), '')
  symlinkSync(sandbox.out, join(sandbox.root, 'out'))
  const codeOf = async (path: string) => (await refusal(() => runTool(makeDirectory, sandbox.context(), { path }))).code
  expect(await codeOf('f')).toBe('invalid_arguments')
  expect(await codeOf('f/g')).toBe('invalid_arguments')
  expect(await codeOf('out/x')).toBe('path_denied')
  expect(readdirSync(sandbox.out)).toEqual([])
})

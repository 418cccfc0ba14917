import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { remove } from '../../../src/tools/files/delete.js'
import { journalContent, readJournal } from '../../../src/workspace/journal.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
  mkdirSync(join(sandbox.root, 'd', 'deep'), { recursive: true })
  writeFileSync(join(sandbox.root, 'd', 'deep', 'a'), 'content a')
  writeFileSync(join(sandbox.root, 'd', 'b'), 'content b', { mode: 0o640 })
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const run = (args: Record<string, unknown>, context = sandbox.context()) => runTool(remove, context, args)

it('FI-12 Delete removes a file and keeps its content and mode', async () => {
  const context = sandbox.context()
  const { text, facts } = await run({ path: 'd/b' }, context)
  expect(text).toBe('Deleted d/b.')
  expect(facts).toEqual({ path: 'd/b', type: 'file', entries: 1 })
  expect(existsSync(at('d/b'))).toBe(false)
  expect(context.journal.records()).toMatchObject([{ kind: 'delete', path: at('d/b'), mode: 0o640 }])
  expect(journalContent(sandbox.journalDir, context.operationId, 0)?.toString()).toBe('content b')
})

it('FI-12 a folder needs recursive; then everything in it is kept, in an order that undo can walk back', async () => {
  expect((await refusal(() => run({ path: 'd' }))).hint).toContain('recursive')
  symlinkSync('deep/a', at('d', 'link'))
  const context = sandbox.context()
  expect((await run({ path: 'd', recursive: true }, context)).facts).toMatchObject({ type: 'directory', entries: 5 })
  expect(readdirSync(sandbox.root)).toEqual([])
  const records = readJournal(sandbox.journalDir, context.operationId)
  const paths = records.map((record) => record.path)
  expect(paths.at(-1)).toBe(at('d'))
  expect(paths.indexOf(at('d/deep/a'))).toBeLessThan(paths.indexOf(at('d/deep')))
  const link = records.find((record) => record.node === 'link')
  expect(journalContent(sandbox.journalDir, context.operationId, link?.seq ?? -1)?.toString()).toBe('deep/a')
})

it('FI-12 PA-02 a link is removed, never what it points to', async () => {
  writeFileSync(join(sandbox.out, 'kept'), 'kept')
  symlinkSync(sandbox.out, at('out'))
  symlinkSync(sandbox.out, at('d', 'out'))
  await run({ path: 'out' })
  await run({ path: 'd', recursive: true })
  expect(readdirSync(sandbox.root)).toEqual([])
  expect(readFileSync(join(sandbox.out, 'kept'), 'utf8')).toBe('kept')
})

it('FI-12 a folder over the caps, or with what undo could not make again, is refused whole', {
  timeout: 60_000,
}, async () => {
  expect(spawnSync('mkfifo', [at('d', 'deep', 'pipe')]).status).toBe(0)
  expect((await refusal(() => run({ path: 'd', recursive: true }))).message).toContain('named pipe')
  expect(await refusal(() => run({ path: 'd/deep/pipe' }))).toMatchObject({
    code: 'invalid_arguments',
    message: '"d/deep/pipe" is a named pipe (FIFO); nothing was removed.',
    hint: 'Delete removes files, links and folders, not pipes, sockets or devices.',
  })
  mkdirSync(at('many'))
  for (let index = 0; index < 10_000; index += 1) writeFileSync(at('many', `${index}`), '')
  expect((await refusal(() => run({ path: 'many', recursive: true }))).code).toBe('too_large')
  expect(readdirSync(at('many'))).toHaveLength(10_000)
  mkdirSync(at('odd'))
  writeFileSync(Buffer.concat([Buffer.from(`${at('odd')}/`), Buffer.from([0xff])]), '')
  expect((await refusal(() => run({ path: 'odd', recursive: true }))).code).toBe('invalid_arguments')
  expect(readdirSync(at('d', 'deep')).sort()).toEqual(['a', 'pipe'])
})

it('FI-12 the workspace itself and a missing file are refused', async () => {
  expect((await refusal(() => run({ path: '.', recursive: true }))).code).toBe('path_denied')
  expect((await refusal(() => run({ path: sandbox.root, recursive: true }))).code).toBe('path_denied')
  expect((await refusal(() => run({ path: 'd/none' }))).code).toBe('not_found')
})

it('FI-12 a cancel in the middle says how far it went, and what is gone is recorded', async () => {
  mkdirSync(at('many'))
  for (let index = 0; index < 100; index += 1) writeFileSync(at('many', `${index}`), `${index}`)
  const controller = new AbortController()
  const context = sandbox.context({ signal: controller.signal })
  const { journal } = context
  const record: typeof journal.record = (change, before) => {
    if (journal.records().length === 29) controller.abort()
    return journal.record(change, before)
  }
  const aborting = { ...context, journal: { ...journal, record } }
  const error = await refusal(() => run({ path: 'many', recursive: true }, aborting))
  expect(error.code).toBe('cancelled')
  expect(readdirSync(at('many'))).toHaveLength(70)
  expect(journal.records()).toHaveLength(30)
  expect(error.message).toContain('30 of 101')
  expect(error.data?.effects_possible).toBe(true)
})

it('FI-12 a cancel while the folder is still looked through removes nothing and leaves nothing open', async () => {
  for (let index = 0; index < 4000; index += 1) {
    mkdirSync(at('wide', `${index % 40}`), { recursive: true })
    writeFileSync(at('wide', `${index % 40}`, `${index}`), '')
  }
  const open = readdirSync('/proc/self/fd').length
  const controller = new AbortController()
  const context = sandbox.context({ signal: controller.signal })
  const running = refusal(() => run({ path: 'wide', recursive: true }, context))
  controller.abort()
  expect(await running).toMatchObject({ code: 'cancelled' })
  expect(context.journal.records()).toEqual([])
  expect(readdirSync(at('wide'))).toHaveLength(40)
  expect(readdirSync('/proc/self/fd')).toHaveLength(open)
})

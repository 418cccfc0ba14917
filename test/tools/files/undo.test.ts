import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { changes } from '../../../src/tools/files/changes.js'
import { remove } from '../../../src/tools/files/delete.js'
import { edit } from '../../../src/tools/files/edit.js'
import { makeDirectory } from '../../../src/tools/files/make-directory.js'
import { move } from '../../../src/tools/files/move.js'
import { undo } from '../../../src/tools/files/undo.js'
import { write } from '../../../src/tools/files/write.js'
import type { Tool } from '../../../src/tools/tool.js'
import { sha256 } from '../../../src/workspace/journal.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const read = (...names: string[]) => readFileSync(at(...names), 'utf8')

/** One call of its own; its operation id. */
async function did(tool: Tool, args: Record<string, unknown>): Promise<string> {
  const context = sandbox.context()
  await runTool(tool, context, args)
  return context.operationId
}

const undoing = (args: Record<string, unknown> = {}) => runTool(undo, sandbox.context(), args)

it('FI-14 without arguments the latest standing change goes, then the one before; an undo is undone by its id', async () => {
  await did(write, { path: 'a', content: 'one' })
  await did(edit, { path: 'a', old_string: 'one', new_string: 'two' })
  const context = sandbox.context()
  expect((await runTool(undo, context, {})).text).toContain('restored a')
  expect(read('a')).toBe('one')
  await undoing()
  expect(existsSync(at('a'))).toBe(false)
  expect((await refusal(() => undoing())).code).toBe('not_found')
  const [redo] = sandbox.context().changes.since(context.operationId).slice(0, 1)
  await undoing({ operation_id: redo?.id })
  expect(read('a')).toBe('one')
  await undoing({ operation_id: context.operationId })
  expect(read('a')).toBe('two')
})

it('FI-14 mode, in-place writes of hard links and links come back as they were', async () => {
  writeFileSync(at('x'), 'x')
  chmodSync(at('x'), 0o751)
  linkSync(at('x'), at('y'))
  symlinkSync('x', at('l'))
  const first = await did(edit, { path: 'x', old_string: 'x', new_string: 'changed' })
  await did(remove, { path: 'l' })
  await did(remove, { path: 'x' })
  const { text } = await undoing({ since: first })
  expect(text).toContain('brought back x as a name of y')
  expect(read('y')).toBe('x')
  expect(statSync(at('x')).ino).toBe(statSync(at('y')).ino)
  expect(statSync(at('x')).mode & 0o7777).toBe(0o751)
  expect(lstatSync(at('l')).isSymbolicLink()).toBe(true)
})

it('FI-14 a whole tree comes back with its modes; a made folder goes only if it is empty', async () => {
  mkdirSync(at('d', 'e'), { recursive: true })
  chmodSync(at('d', 'e'), 0o711)
  writeFileSync(at('d', 'e', 'f'), 'f', { mode: 0o640 })
  await did(remove, { path: 'd', recursive: true })
  await undoing()
  expect([statSync(at('d', 'e')).mode & 0o777, statSync(at('d', 'e', 'f')).mode & 0o777]).toEqual([0o711, 0o640])
  await did(makeDirectory, { path: 'm/n' })
  writeFileSync(at('m', 'mine'), '')
  const { text, facts } = await undoing()
  expect(facts.kept).toEqual(['m'])
  expect(text).toContain('Kept, because something is in it: m.')
  expect(readdirSync(at('m'))).toEqual(['mine'])
})

it('FI-14 a file that was changed since refuses the whole call and shows the difference; nothing is undone', async () => {
  const first = await did(write, { path: 'a', content: 'kiki\n' })
  await did(write, { path: 'b', content: 'b' })
  writeFileSync(at('a'), 'person\n')
  const error = await refusal(() => undoing({ since: first }))
  expect(error.code).toBe('conflict')
  expect(error.message).toContain('1 of 2 changes')
  expect(error.message).toContain('(What the change left is not kept')
  expect([read('a'), read('b')]).toEqual(['person\n', 'b'])
  writeFileSync(at('a'), 'kiki\n')
  const edited = await did(edit, { path: 'a', old_string: 'kiki', new_string: 'again' })
  writeFileSync(at('a'), 'person\n')
  const second = await refusal(() => undoing({ operation_id: edited }))
  expect(second.message).toContain('-kiki\n+person')
  expect(second.data).toMatchObject({ conflicts: [{ operation_id: edited, path: 'a' }] })
  rmSync(at('a'))
  expect((await refusal(() => undoing({ operation_id: edited }))).message).toContain('not there any more')
})

it('FI-14 a change that a later call stands on names that call', async () => {
  const first = await did(write, { path: 'a', content: '1' })
  const later = await did(edit, { path: 'a', old_string: '1', new_string: '2' })
  const error = await refusal(() => undoing({ operation_id: first }))
  expect(error.hint).toContain(later)
  expect(error.data).toMatchObject({ changed_by: [later] })
  expect(error.message).toContain('Difference from what the change left to now:\n')
  const moved = await did(move, { from: 'a', to: 'b' })
  expect((await refusal(() => undoing({ operation_id: first }))).message).toContain(`moved later (${moved})`)
  await undoing({ since: first })
  expect(readdirSync(sandbox.root)).toEqual([])
})

it('FI-14 what is there tells which changes happened: an undone or failed one needs nothing', async () => {
  const first = await did(write, { path: 'a', content: 'x' })
  rmSync(at('a'))
  expect((await undoing({ operation_id: first })).facts).toMatchObject({ undone: [], as_before: 1 })
  writeFileSync(at('f'), 'was')
  const context = sandbox.context()
  context.journal.record(
    { kind: 'delete', path: at('f'), mode: 0o644, beforeSha256: sha256(Buffer.from('was')) },
    Buffer.from('was'),
  )
  expect((await refusal(() => undoing())).code).toBe('not_found')
  expect(read('f')).toBe('was')
})

it('FI-14 PA-02 a name that was replaced by a link, or lies outside by now, is not followed', async () => {
  mkdirSync(at('d'))
  writeFileSync(at('d', 'f'), 'old')
  const first = await did(edit, { path: 'd/f', old_string: 'old', new_string: 'new' })
  renameSync(at('d'), at('real'))
  writeFileSync(join(sandbox.out, 'f'), 'new')
  symlinkSync(sandbox.out, at('d'))
  expect((await refusal(() => undoing({ operation_id: first }))).code).toBe('path_denied')
  rmSync(at('d'))
  symlinkSync('real', at('d'))
  expect((await refusal(() => undoing({ operation_id: first }))).code).toBe('conflict')
  expect([readFileSync(join(sandbox.out, 'f'), 'utf8'), read('real', 'f')]).toEqual(['new', 'new'])
})

it('FI-14 dry_run says what would be done and changes nothing', async () => {
  writeFileSync(at('a'), 'one\n')
  await did(edit, { path: 'a', old_string: 'one', new_string: 'two' })
  const context = sandbox.context()
  const { text } = await runTool(undo, context, { dry_run: true })
  expect(text).toContain('Would undo 1 change')
  expect(text).toContain('-one\n+two')
  expect([read('a'), context.journal.records()]).toEqual(['two\n', []])
})

it('FI-14 a step that fails later says what was done, and a repeated undo does the rest', async () => {
  const first = await did(write, { path: 'a', content: 'a' })
  await did(write, { path: 'b', content: 'b' })
  const context = sandbox.context()
  const { content, page, since } = context.changes
  const record = context.journal.record.bind(context.journal)
  let begun = 0
  const journal = {
    ...context.journal,
    record: (...args: Parameters<typeof record>) => {
      begun += 1
      // Somebody writes the second file between its check and its turn.
      if (begun === 1) writeFileSync(at('a'), 'meanwhile')
      return record(...args)
    },
  }
  const error = await refusal(() =>
    undo.run({ ...context, journal, changes: { content, page, since } }, { since: first, dry_run: false }),
  )
  expect([error.code, error.data?.effects_possible, error.data?.steps]).toEqual(['conflict', true, 2])
  expect(error.message).toContain('after 1 of 2 steps')
  expect(error.message).toContain('Done: removed b.')
  expect([existsSync(at('b')), read('a')]).toEqual([false, 'meanwhile'])
  writeFileSync(at('a'), 'a')
  await undoing({ operation_id: first })
  expect(readdirSync(sandbox.root)).toEqual([])
})

it('FI-14 a cancelled undo stops between two steps and is recorded as far as it went', async () => {
  const first = await did(write, { path: '0', content: '0' })
  for (let index = 1; index < 30; index += 1) await did(write, { path: `${index}`, content: `${index}` })
  const controller = new AbortController()
  const context = sandbox.context({ signal: controller.signal })
  const record = context.journal.record
  const journal = {
    ...context.journal,
    record: (...args: Parameters<typeof record>) => {
      if (context.journal.records().length === 9) controller.abort()
      return record(...args)
    },
  }
  const error = await refusal(() => undo.run({ ...context, journal }, { since: first, dry_run: false }))
  expect([error.code, readdirSync(sandbox.root).length, context.journal.records().length]).toEqual([
    'cancelled',
    20,
    10,
  ])
})

it('FI-14 wrong arguments are refused', async () => {
  expect((await refusal(() => undoing({ operation_id: 'op_x', since: 'op_y' }))).code).toBe('invalid_arguments')
  expect((await refusal(() => undoing({ operation_id: 'op_x' }))).code).toBe('operation_unavailable')
  const none = sandbox.context().operationId
  expect((await refusal(() => undoing({ operation_id: none }))).message).toContain('changed no files')
})

it('FI-14 Changes lists operations newest first in pages, and says which were undone', async () => {
  const ids: string[] = []
  for (let index = 0; index < 25; index += 1) ids.push(await did(write, { path: `f${index}`, content: 'x' }))
  const context = sandbox.context()
  await runTool(undo, context, {})
  const show = (args: Record<string, unknown>) => runTool(changes, sandbox.context(), args)
  const first = await show({})
  expect(first.text).toContain(`created f24 (undone by ${context.operationId})`)
  expect(first.text).toContain('Changes made by commands are not recorded here.')
  const second = await show({ cursor: first.facts.next })
  const listed = [first, second].flatMap(({ facts }) => facts.operations as { operation_id: string }[])
  expect(listed.map((one) => one.operation_id)).toEqual([context.operationId, ...ids.toReversed()])
  expect(second.facts.next).toBeUndefined()
  expect((await refusal(() => show({ cursor: 'x' }))).code).toBe('invalid_arguments')
})

it('FI-14 Changes shows the difference of an operation or a path as long as the later content is kept', async () => {
  const made = await did(write, { path: 'a', content: '1\n' })
  await did(edit, { path: 'a', old_string: '1', new_string: '2' })
  await did(move, { from: 'a', to: 'b' })
  await did(edit, { path: 'b', old_string: '2', new_string: '3' })
  const show = async (args: Record<string, unknown>) => (await runTool(changes, sandbox.context(), args)).text
  expect(await show({ operation_id: made })).toContain('+1')
  const text = await show({ path: 'a' })
  expect(text).toContain('moved a to b')
  expect(text).toContain('-1\n+2')
  expect(await show({ path: 'b' })).toContain('-2\n+3')
  writeFileSync(at('b'), 'person')
  expect(await show({ path: 'b' })).toContain('is not kept')
  expect(await show({ path: 'nothing' })).toContain('No recorded changes')
})

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../../src/lib/json.js'
import { multiEdit } from '../../../src/tools/files/multi-edit.js'
import { createSandbox, refusal, type Sandbox } from '../../helpers/tool-context.js'
import { call, textOf } from './tool-call.js'

let folder: Sandbox
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

const at = (name: string) => join(folder.root, name)
type One = [old: string, fresh: string, more?: Record<string, unknown>]

function change(path: string, edits: One[], more: Record<string, unknown> = {}, context = folder.context()) {
  const list = edits.map(([old_string, new_string, rest]) => ({ old_string, new_string, ...rest }))
  return call(multiEdit, context, { path, edits: list, ...more })
}

describe('MultiEdit', () => {
  it('FI-09 FI-11 applies edits in order, each to what the one before left, as one change', async () => {
    writeFileSync(at('f'), '\ufeffa\r\nb\r\na\r\n')
    const context = folder.context()
    const edits: One[] = [
      ['a', 'x', { replace_all: true, expected_count: 2 }],
      ['x\nb', 'y\nz'],
      ['z', 'last'],
    ]
    const result = await change('f', edits, {}, context)
    const after = '\ufeffy\r\nlast\r\nx\r\n'
    expect(readFileSync(at('f'), 'utf8')).toBe(after)
    expect(result.facts).toEqual({ count: 4, sha256: sha256(after), matched: ['exact', 'line_endings', 'exact'] })
    expect(textOf(result)).toContain('edits[1] was matched without regard to line endings.')
    expect(textOf(result)).toContain('@@ -1,3 +1,3 @@\n-a\n-b\n-a\n+y\n+last\n+x')
    expect(context.journal.records()).toHaveLength(1)
  })

  it('FI-09 TQ-04 all or nothing: a refusal names the edit, and nothing is left behind (FC-E02, FC-E19)', async () => {
    const error = await refusal(() =>
      change('new.txt', [
        ['', 'a'],
        ['missing', 'b'],
      ]),
    )
    expect(error).toMatchObject({ code: 'not_found', data: { edit: 1 } })
    expect(error.message).toMatch(/^edits\[1\]: old_string is not in new\.txt\. Nothing was changed\./)
    expect(readdirSync(folder.root)).toEqual([])
    writeFileSync(at('f'), 'one\ntwo\ntwo\n')
    const twice = await refusal(() =>
      change('f', [
        ['one', '1'],
        ['two', '2'],
      ]),
    )
    expect(twice).toMatchObject({ code: 'conflict', data: { edit: 1, lines: [2, 3] } })
    expect(twice.hint).toContain('replace_all')
    expect(readFileSync(at('f'), 'utf8')).toBe('one\ntwo\ntwo\n')
    expect(readdirSync(folder.root)).toEqual(['f'])
  })

  it('FI-09 makes a new file from an empty old_string and the edits after it', async () => {
    const edits: One[] = [
      ['', 'hello NAME\n'],
      ['NAME', 'world'],
    ]
    expect((await change('a/new.txt', edits)).facts).toMatchObject({ created: true, count: 2 })
    expect(readFileSync(at('a/new.txt'), 'utf8')).toBe('hello world\n')
  })

  it('FI-09 TQ-04 refuses edits that undo each other, a stale file, and an edit that changes nothing', async () => {
    writeFileSync(at('f'), 'a\n')
    const undone = await refusal(() =>
      change('f', [
        ['a', 'b'],
        ['b', 'a'],
      ]),
    )
    expect(undone).toMatchObject({ code: 'invalid_arguments' })
    expect(undone.message).toBe('The edits undo each other and change nothing in f.')
    const stale = await refusal(() => change('f', [['a', 'b']], { expected_sha256: '0'.repeat(64) }))
    expect(stale).toMatchObject({ code: 'conflict' })
    const same = await refusal(() => change('f', [['a', 'a']]))
    expect(same).toMatchObject({ code: 'invalid_arguments', data: { edit: 0 } })
    expect(readFileSync(at('f'), 'utf8')).toBe('a\n')
  })

  it('FI-11 dry_run shows one diff and writes nothing', async () => {
    const edits: One[] = [
      ['', 'a\n'],
      ['a', 'b'],
    ]
    const result = await change('new', edits, { dry_run: true })
    expect(textOf(result)).toContain('Dry run, nothing was written')
    expect(textOf(result)).toMatch(/@@ -0,0 \+1 @@\n\+b$/)
    expect(existsSync(at('new'))).toBe(false)
  })

  it('FI-09 takes 1 to 100 edits and describes itself within 900 characters', () => {
    const one = { old_string: 'a', new_string: 'b' }
    const parsed = (edits: unknown[]) => multiEdit.input.safeParse({ path: 'f', edits }).success
    expect([parsed([]), parsed([one]), parsed(Array(100).fill(one)), parsed(Array(101).fill(one))]).toEqual([
      false,
      true,
      true,
      false,
    ])
    expect(multiEdit.description.length).toBeLessThan(900)
  })
})

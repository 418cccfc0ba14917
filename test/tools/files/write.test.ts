import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { write } from '../../../src/tools/files/write.js'
import { sha256 } from '../../../src/workspace/journal.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const run = (args: Record<string, unknown>) => runTool(write, sandbox.context(), args)

it('FI-06 Write makes a file and its folders and answers with the facts', async () => {
  const { text, facts } = await run({ path: 'new/f.txt', content: 'héllo' })
  expect(facts).toEqual({ path: 'new/f.txt', created: true, bytes: 6, sha256: sha256(Buffer.from('héllo')) })
  expect(text).toContain('Created new/f.txt')
  expect((await run({ path: 'new/f.txt', content: 'other' })).facts).toMatchObject({ created: false })
  expect((await run({ path: 'new/f.txt', content: 'other' })).text).toContain('Already had this content')
})

it('FI-06 the last line end is neither added nor removed (FC-E09), and every character arrives (FC-E11)', async () => {
  for (const content of ['x', 'x\n', '', '\n', '\u2500\u2500 title\n', 'a\0b', '😀\u200d\ufeff']) {
    await run({ path: 'f', content })
    expect(readFileSync(at('f')).equals(Buffer.from(content))).toBe(true)
    writeFileSync(at('f'), '')
  }
})

it('FI-06 a replaced file keeps its mode, byte order mark and line ends unless told otherwise', async () => {
  const cases: [before: string | Buffer, content: string, after: string | Buffer][] = [
    ['a\r\nb\r\n', 'x\ny', 'x\r\ny'],
    ['a\r\nb\r\n', 'x\r\ny\n', 'x\r\ny\r\n'],
    ['a\nb\n', 'x\r\ny\r\n', 'x\ny\n'],
    ['a\r\nb\n', 'x\ny\r\n', 'x\ny\r\n'],
    ['one line', 'x\r\ny', 'x\r\ny'],
    ['\ufeffa\n', 'x\n', '\ufeffx\n'],
    ['\ufeffa\n', '\ufeffx\n', '\ufeffx\n'],
    [Buffer.from('\ufeffa\r\nb\r\n', 'utf16le'), 'ü\n', Buffer.from('\ufeffü\r\n', 'utf16le')],
    [Buffer.from('\ufeffa\n', 'utf16le').swap16(), 'ü\n', Buffer.from('\ufeffü\n', 'utf16le').swap16()],
  ]
  for (const [before, content, after] of cases) {
    writeFileSync(at('f'), before)
    chmodSync(at('f'), 0o750)
    await run({ path: 'f', content })
    expect(readFileSync(at('f')), JSON.stringify([before, content])).toEqual(Buffer.from(after))
    expect(statSync(at('f')).mode & 0o777).toBe(0o750)
  }
  writeFileSync(at('f'), '\ufeffa\r\n')
  await run({ path: 'f', content: 'x\n', keep_format: false })
  expect(readFileSync(at('f'), 'utf8')).toBe('x\n')
})

it('FI-06 expected_sha256 guards what is replaced', async () => {
  writeFileSync(at('f'), 'old')
  const wrong = await refusal(() => run({ path: 'f', content: 'new', expected_sha256: '0'.repeat(64) }))
  expect(wrong.code).toBe('conflict')
  expect(wrong.data).toMatchObject({ sha256: sha256(Buffer.from('old')) })
  expect((await refusal(() => run({ path: 'g', content: 'new', expected_sha256: '0'.repeat(64) }))).code).toBe(
    'conflict',
  )
  expect(readdirSync(sandbox.root)).toEqual(['f'])
  await run({ path: 'f', content: 'new', expected_sha256: sha256(Buffer.from('old')).toUpperCase() })
  expect(readFileSync(at('f'), 'utf8')).toBe('new')
})

it('FI-06 PA-02 Write follows no link out of the workspace (FC-P15)', async () => {
  symlinkSync(sandbox.out, at('x'))
  expect((await refusal(() => run({ path: 'x/authorized_keys', content: 'key' }))).code).toBe('path_denied')
  expect(readdirSync(sandbox.out)).toEqual([])
})

it('FI-06 half a character is refused rather than replaced', async () => {
  expect((await refusal(() => run({ path: 'f', content: 'a\ud800' }))).code).toBe('invalid_arguments')
  expect(readdirSync(sandbox.root)).toEqual([])
})

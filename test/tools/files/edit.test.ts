import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../../src/lib/json.js'
import { edit } from '../../../src/tools/files/edit.js'
import { createRead } from '../../../src/tools/files/read.js'
import { applyEdit } from '../../../src/workspace/edit-text.js'
import { createSandbox, refusal, type Sandbox } from '../../helpers/tool-context.js'
import { call, textOf } from './tool-call.js'

let folder: Sandbox
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

const at = (name: string) => join(folder.root, name)
const put = (name: string, content: string | Buffer) => writeFileSync(at(name), content)
const bytesOf = (name: string) => readFileSync(at(name))
const contentOf = (name: string) => bytesOf(name).toString()

async function change(path: string, old_string: string, new_string: string, more: Record<string, unknown> = {}) {
  const result = await call(edit, folder.context(), { path, old_string, new_string, ...more })
  return { text: textOf(result), facts: result.facts ?? {} }
}

/** Edits a fresh file and gives its new content. */
async function edited(content: string | Buffer, old: string, fresh: string, more: Record<string, unknown> = {}) {
  put('f', content)
  await change('f', old, fresh, more)
  return contentOf('f')
}

/** The refusal of an edit that must leave the file as it was. */
async function refused(content: string | Buffer, old: string, fresh: string, more: Record<string, unknown> = {}) {
  put('f', content)
  const names = readdirSync(folder.root)
  const error = await refusal(() => change('f', old, fresh, more))
  expect(bytesOf('f').equals(Buffer.from(content))).toBe(true)
  expect(readdirSync(folder.root)).toEqual(names)
  return error
}

describe('Edit: what is written', () => {
  it('FI-07 FC-E01 FC-E06 text is literal: $$, $&, $`, \\n and \\1 mean themselves', async () => {
    expect(await edited('Price: PLACEHOLDER\n', 'PLACEHOLDER', '$$100 USD')).toBe('Price: $$100 USD\n')
    const lines = 'line\n'.repeat(199)
    expect(await edited(`${lines}END\n`, 'END', 'cost $`5')).toBe(`${lines}cost $\`5\n`)
    for (const literal of ['$&', "$'", '$1', '\\n', '\\1', '\u2500\0']) {
      expect(await edited('a X b X', 'X', literal, { replace_all: true })).toBe(`a ${literal} b ${literal}`)
    }
    expect(await edited('a.c abc\n', 'a.c', '.*')).toBe('.* abc\n')
  })

  it('FI-07 keeps CRLF, byte order mark, encoding and the missing final newline (FC-E09, FC-E14)', async () => {
    expect(await edited('a\r\nb\r\n', 'a\nb', 'x\ny')).toBe('x\r\ny\r\n')
    expect(await edited('a\r\nb\r\n', 'a\r\nb', 'x\r\ny')).toBe('x\r\ny\r\n')
    expect(await edited('a\r\nb\r\n', 'a', 'x\ny')).toBe('x\r\ny\r\nb\r\n')
    expect(await edited('a\r\nb\r\n', '\nb', '\nc')).toBe('a\r\nc\r\n')
    expect(await edited('a\nb\n', 'a', 'x\r\ny')).toBe('x\ny\nb\n')
    expect(await edited('a\nb', 'a', 'A')).toBe('A\nb')
    expect(await edited('a\nb', 'b', 'B')).toBe('a\nB')
    expect(await edited('\ufeffa\r\n', 'a', 'b\n')).toBe('\ufeffb\r\n\r\n')
    expect(await edited('a\r\nb\nc\r\n', 'b', 'x\ny')).toBe('a\r\nx\ny\nc\r\n')
    expect(await edited('a\r\nb\r\nc\n', 'a\nb', 'x\ny')).toBe('x\r\ny\r\nc\n')
  })

  it('FI-07 FI-03 edits UTF-16 in UTF-16 (FC-R06)', async () => {
    for (const big of [false, true]) {
      const bytes = (text: string) => {
        const little = Buffer.from(`\ufeff${text}`, 'utf16le')
        return big ? little.swap16() : little
      }
      put('u', bytes('hi é\r\nyou\r\n'))
      await change('u', 'é\nyou', '日本\n😀')
      expect(bytesOf('u').equals(bytes('hi 日本\r\n😀\r\n'))).toBe(true)
    }
  })

  it('FI-07 leaves every other byte of a legacy file alone, and refuses what it cannot spell (FC-E13)', async () => {
    const sjis = Buffer.from([0x93, 0xfa, 0x96, 0x7b, 10])
    put('j', Buffer.concat([sjis, Buffer.from('key=1\n')]))
    await change('j', 'key=1', 'key=2')
    expect(bytesOf('j').equals(Buffer.concat([sjis, Buffer.from('key=2\n')]))).toBe(true)
    expect(await refusal(() => change('j', 'key=2', 'key=é'))).toMatchObject({ code: 'invalid_arguments' })
    expect(await refusal(() => change('j', '日', 'x'))).toMatchObject({ code: 'invalid_arguments' })
    // 0x83 0x41 is one katakana letter whose second byte looks like "A".
    const half = await refused(Buffer.from([0x83, 0x41, 0x3d, 0x31, 10]), 'A=1', 'B=1')
    expect(half).toMatchObject({ code: 'invalid_arguments' })
    expect(half.message).toContain('could be half of a character')
    expect(bytesOf('j').subarray(0, sjis.length).equals(sjis)).toBe(true)
  })

  it('FI-07 keeps composed and decomposed letters apart (FC-E03)', async () => {
    expect(await edited('e\u0301=1\n\u00e9=2\n', '\u00e9=2', '\u00e9=3')).toBe('e\u0301=1\n\u00e9=3\n')
  })

  it('FI-07 replace_all is left to right, not overlapping, and counted (FC-E15, FC-E17)', async () => {
    put('f', 'foo\nfoo\nfoo\n')
    expect((await change('f', 'foo\n', 'bar\n', { replace_all: true })).facts).toMatchObject({ count: 3 })
    expect(contentOf('f')).toBe('bar\nbar\nbar\n')
    put('g', ';NULL;NULL;NULL;')
    const result = await change('g', ';NULL;', ';;', { replace_all: true })
    // The second of three overlapping matches is gone once the first is replaced.
    expect(contentOf('g')).toBe(';;NULL;;')
    expect(result.facts).toMatchObject({ count: 2 })
    expect(result.text).toContain('2 replacements in lines 1;')
  })

  it('FI-07 keeps the mode, and a hard link stays the same file (FC-E12, FC-E18)', async () => {
    for (const mode of [0o755, 0o600, 0o640]) {
      put('m', 'x\n')
      chmodSync(at('m'), mode)
      await change('m', 'x', 'y')
      expect(statSync(at('m')).mode & 0o7777).toBe(mode)
    }
    put('a', 'x\n')
    linkSync(at('a'), at('b'))
    await change('a', 'x', 'y')
    expect([contentOf('a'), contentOf('b')]).toEqual(['y\n', 'y\n'])
    expect(statSync(at('a')).ino).toBe(statSync(at('b')).ino)
  })

  it('FI-07 an exact edit equals split and join on any text', () => {
    const text = fc.array(fc.constantFrom('a', 'b', '\n', 'é', '$&', '😀'), { maxLength: 25 }).map((a) => a.join(''))
    fc.assert(
      fc.property(text, text, text, (content, oldString, newString) => {
        fc.pre(oldString !== '' && content.includes(oldString) && oldString !== newString)
        const { bytes } = applyEdit(Buffer.from(content), { oldString, newString, replaceAll: true }, 'f')
        expect(bytes.toString()).toBe(content.split(oldString).join(newString))
      }),
    )
  })

  it('FI-07 an empty old_string makes a file or fills an empty one, never another', async () => {
    const made = await change('new/deep.txt', '', 'a\n')
    expect(contentOf('new/deep.txt')).toBe('a\n')
    expect(made).toMatchObject({ facts: { created: true, count: 1, sha256: sha256('a\n') } })
    expect(made.text).toMatch(/^Created new\/deep\.txt: 1 replacement in line 1;/)
    put('empty', '')
    await change('empty', '', 'b\n')
    expect(contentOf('empty')).toBe('b\n')
    expect(await refusal(() => change('empty', '', 'c'))).toMatchObject({ code: 'invalid_arguments' })
    expect(await refusal(() => change('absent', 'x', 'c'))).toMatchObject({ code: 'not_found' })
    expect(existsSync(at('absent'))).toBe(false)
  })

  it('FI-01 FI-07 what Read shows after the tab matches at the first try, 20 times over (FC-E04, FC-E05)', async () => {
    put('t', '\tfoo\r\n')
    for (let round = 0; round < 20; round++) {
      const read = await call(createRead(), folder.context(), { path: 't' })
      const line =
        textOf(read)
          .split('\n')[0]
          ?.replace(/^\d+\t/, '') ?? ''
      await change('t', line, `${line}${round % 10}`, { expected_sha256: read.facts?.sha256 })
    }
    expect(contentOf('t')).toBe(`\tfoo${'0123456789'.repeat(2)}\r\n`)
  })
})

describe('Edit: tolerance', () => {
  it('FI-08 says that a match was tolerant and touches nothing else', async () => {
    put('f', 'if x:  \n    say(“a”)\t\nb  \n')
    const result = await change('f', 'if x:\n    say("a")', 'if y:\n    say("b")')
    expect(contentOf('f')).toBe('if y:\n    say("b")\t\nb  \n')
    expect(result.text).toContain(
      'old_string was matched without regard to white space at line ends and typographic quotes.',
    )
    expect(result.facts).toMatchObject({ matched: ['white_space_and_quotes'] })
    put('g', 'a\r\nb\r\n')
    expect((await change('g', 'a\nb', 'c')).text).toContain('old_string was matched without regard to line endings.')
    put('h', 'a  \na\n')
    expect((await change('h', 'a\n', 'b\n')).facts).toMatchObject({ matched: ['exact'] })
    expect(contentOf('h')).toBe('a  \nb\n')
  })

  it('FI-08 never re-indents (FC-E16) and never matches by anchors (FC-E08)', async () => {
    expect(await edited('if x:\n    a\nb\n', '    a\nb', '    a2\nb2')).toBe('if x:\n    a2\nb2\n')
    expect(await edited('\tif\n\t\tx  \n', '\tif\n\t\tx\n', '\tif\n\t\ty\n')).toBe('\tif\n\t\ty\n')
    const error = await refused('func f\n y := 2\nend\n', 'func f\n y := 99\nend', 'func f\n y := 3\nend')
    expect(error.code).toBe('not_found')
    expect(error.message).toContain('The nearest is lines 1-3')
    expect(error.message).toContain('2\t y := 2')
    const indent = await refused('\tfoo()\n', '    foo()\n', 'x')
    expect(indent.message).toContain('only white space differs')
  })
})

describe('Edit: refusals', () => {
  it('FI-07 TQ-04 several matches without replace_all list their lines, overlapping ones too (FC-E17)', async () => {
    const error = await refused('x\na\nx\nb x\n', 'x', 'y')
    expect(error).toMatchObject({ code: 'conflict', data: { count: 3, lines: [1, 3, 4] } })
    expect(error.message).toBe('old_string stands 3 times in f: lines 1, 3, 4. Nothing was changed.')
    expect(error.hint).toContain('replace_all')
    expect(await refused('aaa', 'aa', 'b')).toMatchObject({ code: 'conflict', data: { count: 2 } })
    expect((await refused('x'.repeat(5000), 'x', 'y')).message).toContain('more than 1000 times')
  })

  it('FI-07 TQ-04 expected_count must be met', async () => {
    const error = await refused('a a a', 'a', 'b', { replace_all: true, expected_count: 2 })
    expect(error).toMatchObject({ code: 'conflict' })
    expect(error.message).toBe('old_string stands 3 times in f, not 2 as expected: lines 1, 1, 1. Nothing was changed.')
    expect(await refused('a', 'a', 'b', { expected_count: 2 })).toMatchObject({ code: 'conflict' })
    expect(await refused('a a', 'a', 'b', { expected_count: 2 })).toMatchObject({ code: 'conflict' })
    expect(await edited('a a a', 'a', 'b', { replace_all: true, expected_count: 3 })).toBe('b b b')
  })

  it('FI-07 TQ-04 no match says how near the nearest is, shows it, and why it differs', async () => {
    const content = 'one\ntwo\nfunction hello(name) {\n  return name\n}\n'
    const near = await refused(content, 'function hello(nam) {', 'x')
    expect(near.code).toBe('not_found')
    expect(near.message).toMatch(/The nearest is line 3 \(\d\d % alike\):\n3\tfunction hello\(name\) \{$/)
    expect(near.data).toMatchObject({ nearest: { from: 3, to: 3 } })
    expect((await refused(content, 'Function Hello(name) {', 'x')).message).toContain(
      'only upper and lower case differ',
    )
    expect((await refused('cafe\u0301 = 1\n', 'caf\u00e9 = 1', 'x')).message).toContain('Unicode normal forms')
    expect((await refused(content, '3\tfunction hello(name) {', 'x')).message).toContain('line number of Read')
    const none = await refused(content, 'zzzz qqqq', 'x')
    expect(none.message).toBe('old_string is not in f. Nothing was changed. Nothing like it is there.')
    expect(none.hint).toContain('Read the file')
    expect(await refused('', 'x', 'y')).toMatchObject({ code: 'not_found' })
  })

  it('FI-07 TQ-04 an edit that changes nothing is an error', async () => {
    expect(await refused('a\n', 'a', 'a')).toMatchObject({ code: 'invalid_arguments' })
    const lineEnds = await refused('a\r\nb\r\n', 'a\r\nb', 'a\nb')
    expect(lineEnds.code).toBe('invalid_arguments')
    expect(lineEnds.message).toContain('changes nothing in f')
  })

  it('FI-07 TQ-04 a file that is not the expected one is a conflict', async () => {
    const error = await refused('a\n', 'a', 'b', { expected_sha256: '0'.repeat(64) })
    expect(error).toMatchObject({ code: 'conflict', data: { sha256: sha256('a\n') } })
    expect(error.hint).toContain('Read the file again')
    expect(await edited('a\n', 'a', 'b', { expected_sha256: sha256('a\n').toUpperCase() })).toBe('b\n')
  })

  it('FI-07 TQ-04 binary files and half characters are refused', async () => {
    const binary = await refused(Buffer.from('a\0b'), 'a', 'c')
    expect(binary).toMatchObject({ code: 'invalid_arguments' })
    expect(binary.message).toContain('is a binary file (application/octet-stream)')
    expect(await refused('a', 'a', '\ud83d')).toMatchObject({ code: 'invalid_arguments' })
  })

  it('FI-04 TQ-04 no folder, no link out, no device', async () => {
    mkdirSync(at('d'))
    writeFileSync(join(folder.out, 'secret'), 'x\n')
    symlinkSync(join(folder.out, 'secret'), at('l'))
    expect(await refusal(() => change('d', 'a', 'b'))).toMatchObject({ code: 'invalid_arguments' })
    expect(await refusal(() => change('l', 'x', 'b'))).toMatchObject({ code: 'path_denied' })
    expect(readFileSync(join(folder.out, 'secret'), 'utf8')).toBe('x\n')
  })

  it('FI-07 describes itself within 900 characters', () => {
    expect(edit.description.length).toBeLessThan(900)
    expect(edit).toMatchObject({ name: 'Edit', effect: 'write', family: 'files' })
  })
})

describe('Edit: results', () => {
  it('FI-11 shows a short unified diff and the new SHA-256', async () => {
    put('f', 'one\ntwo\nthree\n')
    const result = await change('f', 'two', 'TWO')
    const hash = sha256('one\nTWO\nthree\n')
    expect(result.text).toBe(
      [
        `Edited f: 1 replacement in line 2; sha256 ${hash}.`,
        '--- f',
        '+++ f',
        '@@ -1,3 +1,3 @@',
        ' one',
        '-two',
        '+TWO',
        ' three',
      ].join('\n'),
    )
    expect(result.facts).toEqual({ count: 1, sha256: hash, matched: ['exact'] })
  })

  it('FI-11 dry_run shows the same and writes and records nothing', async () => {
    put('f', 'one\ntwo\n')
    const context = folder.context()
    const dry = await call(edit, context, { path: 'f', old_string: 'two', new_string: '2', dry_run: true })
    expect(contentOf('f')).toBe('one\ntwo\n')
    expect(context.journal.records()).toEqual([])
    expect(textOf(dry)).toMatch(/^Dry run, nothing was written; this would be f: 1 replacement in line 2;/)
    const real = await change('f', 'two', '2')
    expect(real.text.split('\n').slice(1)).toEqual(textOf(dry).split('\n').slice(1))
    expect(dry.facts).toEqual({ ...real.facts, dry_run: true })
    await change('new', '', 'x', { dry_run: true })
    expect(existsSync(at('new'))).toBe(false)
    const absent = await refusal(() => change('new', 'x', 'y', { dry_run: true }))
    expect(absent).toMatchObject({ code: 'not_found' })
    const stale = { dry_run: true, expected_sha256: '0'.repeat(64) }
    expect(await refusal(() => change('f', '2', 'y', stale))).toMatchObject({ code: 'conflict' })
  })

  it('FI-11 FI-07 edits one line of 10 MB without a long pause and with a small diff (FC-E07)', async () => {
    put('big', `${'x'.repeat(5_000_000)}NEEDLE${'y'.repeat(5_000_000)}`)
    const delay = monitorEventLoopDelay({ resolution: 10 })
    delay.enable()
    const started = performance.now()
    const result = await change('big', 'NEEDLE', 'z')
    expect(performance.now() - started).toBeLessThan(6000)
    delay.disable()
    expect(delay.max / 1e6).toBeLessThan(3000)
    expect(result.text.length).toBeLessThan(2000)
    expect(result.text).toContain('xNEEDLEy')
    expect(bytesOf('big').length).toBe(10_000_001)
    // Without the disk's part: the work on the event loop.
    const cpu = process.cpuUsage()
    await change('big', 'xzy', 'NEEDLE', { dry_run: true })
    const { user, system } = process.cpuUsage(cpu)
    expect((user + system) / 1000).toBeLessThan(1000)
    const missing = await refusal(() => change('big', 'NEEDLES', 'z'))
    expect(missing.message.length).toBeLessThan(1500)
  })

  it('FI-07 two edits at the same moment both apply or one is a conflict (FC-E10)', async () => {
    for (let round = 0; round < 50; round++) {
      put('f', '1\n2\n')
      const done = await Promise.allSettled([change('f', '1', 'one'), change('f', '2', 'two')])
      const lost = done.filter((one) => one.status === 'rejected' && one.reason.code !== 'conflict')
      expect(lost).toEqual([])
      if (done.every((one) => one.status === 'fulfilled')) expect(contentOf('f')).toBe('one\ntwo\n')
    }
  })
})

import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../../src/lib/json.js'
import { applyPatch } from '../../../src/tools/files/apply-patch.js'
import { undo } from '../../../src/tools/files/undo.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let folder: Sandbox
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

const at = (name: string) => join(folder.root, name)
const read = (name: string) => readFileSync(at(name), 'utf8')
const mode = (name: string) => (statSync(at(name)).mode & 0o7777).toString(8)
const apply = (patch: string, more: Record<string, unknown> = {}, context = folder.context()) =>
  runTool(applyPatch, context, { patch, ...more })
const refuse = (patch: string) => refusal(() => apply(patch))

const ABC = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n'
const EDIT_TWO = '--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n'

describe('ApplyPatch with unified diffs', () => {
  it('FI-10 FI-11 changes several files, answers a diff and the new SHA-256 of each, and is undone as one', async () => {
    writeFileSync(at('f'), ABC)
    writeFileSync(at('g'), 'x\n', { mode: 0o640 })
    const patch = `${EDIT_TWO}@@ -6,2 +6,3 @@\n six\n seven\n+eight\n--- g\t2026-01-01\n+++ g\t2026-01-02\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new/n\n@@ -0,0 +1 @@\n+fresh\n`
    const { text, facts } = await apply(patch)
    expect(read('f')).toBe('one\n2\nthree\nfour\nfive\nsix\nseven\neight\n')
    expect([read('g'), mode('g'), read('new/n')]).toEqual(['y\n', '640', 'fresh\n'])
    expect(facts.files).toEqual([
      {
        path: 'f',
        did: 'edited',
        sha256: sha256(readFileSync(at('f'))),
        hunks: [
          { line: 1, matched: 'exact' },
          { line: 6, matched: 'exact' },
        ],
      },
      { path: 'g', did: 'edited', sha256: sha256(Buffer.from('y\n')), hunks: [{ line: 1, matched: 'exact' }] },
      { path: 'new/n', did: 'created', sha256: sha256(Buffer.from('fresh\n')) },
    ])
    expect(text).toContain('Applied the patch to 3 files:')
    expect(text).toContain('-two\n+2')
    await runTool(undo, folder.context(), {})
    expect([read('f'), read('g'), mode('g'), existsSync(at('new'))]).toEqual([ABC, 'x\n', '640', false])
  })

  it('FI-10 FI-14 makes, deletes, renames and changes the mode as git says, and undo brings all back', async () => {
    writeFileSync(at('gone'), 'a\nb\n', { mode: 0o600 })
    writeFileSync(at('old name'), ABC, { mode: 0o644 })
    writeFileSync(at('run'), '#!/bin/sh\n', { mode: 0o644 })
    symlinkSync('run', at('link'))
    const patch = [
      'diff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n',
      'diff --git a/old name b/sub/new name\nsimilarity index 80%\nrename from old name\nrename to sub/new name\n--- a/old name\t\n+++ b/sub/new name\t\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n',
      'diff --git a/run b/run\nold mode 100644\nnew mode 100755\n',
      'diff --git a/link b/other\nsimilarity index 100%\nrename from link\nrename to other\n',
      'diff --git a/tool b/tool\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/tool\n@@ -0,0 +1 @@\n+#!/bin/sh\n\\ No newline at end of file\n',
      'diff --git "a/n\\303\\244me" "b/n\\303\\244me"\nnew file mode 100644\nindex 0..0\n',
    ].join('')
    const { text } = await apply(patch)
    expect(readdirSync(folder.root).sort()).toEqual(['näme', 'other', 'run', 'sub', 'tool'].sort())
    expect(read('sub/new name')).toBe(ABC.replace('two', '2'))
    expect([mode('run'), read('tool'), readlinkSync(at('other')), read('näme')]).toEqual([
      '755',
      '#!/bin/sh',
      'run',
      '',
    ])
    expect(statSync(at('tool')).mode & 0o100).toBe(0o100)
    expect(text).toContain('Moved old name to sub/new name: 1 hunk')
    expect(text).toContain('Edited run; executable')
    await runTool(undo, folder.context(), {})
    expect(readdirSync(folder.root).sort()).toEqual(['gone', 'link', 'old name', 'run'])
    expect([read('gone'), mode('gone'), read('old name'), mode('run'), readlinkSync(at('link'))]).toEqual([
      'a\nb\n',
      '600',
      ABC,
      '644',
      'run',
    ])
  })

  it('FI-10 FI-14 a mode that was changed since is not undone over', async () => {
    writeFileSync(at('run'), 'x\n', { mode: 0o644 })
    await apply('diff --git a/run b/run\nold mode 100644\nnew mode 100755\n')
    chmodSync(at('run'), 0o700)
    expect(await refusal(() => runTool(undo, folder.context(), {}))).toMatchObject({ code: 'conflict' })
    expect(mode('run')).toBe('700')
  })

  it('FI-10 keeps the final newline, or changes it where the patch says so', async () => {
    const cases = [
      ['a\nb', ' a\n-b\n+c\n', 'a\nc'],
      ['a\nb', ' a\n-b\n\\ No newline at end of file\n+c\n', 'a\nc\n'],
      ['a\nb\n', ' a\n-b\n+c\n\\ No newline at end of file\n', 'a\nc'],
      ['a\nb', ' a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n', 'a\nc'],
      ['a\nb', ' a\n b\n+c\n', 'a\nb\nc'],
      ['a\nb\n', '-a\n-b\n', ''],
    ] as const
    for (const [before, hunk, after] of cases) {
      writeFileSync(at('f'), before)
      await apply(`--- a/f\n+++ b/f\n@@ @@\n${hunk}`)
      expect(read('f'), hunk).toBe(after)
    }
  })

  it('FI-10 FI-08 keeps CRLF, BOM and UTF-16 of the file, and says that line endings were overlooked', async () => {
    writeFileSync(at('crlf'), '\ufeffone\r\ntwo\r\nthree\r\n')
    writeFileSync(at('wide'), Buffer.from('\ufeffone\r\ntwo\r\nthree', 'utf16le'))
    const hunk = '@@ -1,3 +1,4 @@\n one\n-two\n+2\n+zwei\n three\n'
    const { text } = await apply(`--- a/crlf\n+++ b/crlf\n${hunk}--- a/wide\n+++ b/wide\n${hunk}`)
    expect(read('crlf')).toBe('\ufeffone\r\n2\r\nzwei\r\nthree\r\n')
    expect(readFileSync(at('wide')).equals(Buffer.from('\ufeffone\r\n2\r\nzwei\r\nthree', 'utf16le'))).toBe(true)
    expect(text).toContain('Hunk 1: matched without regard to line endings.')
  })

  it('FI-10 a patch with CRLF in its hunks is taken at its word where the file has the same; one sent with CRLF throughout is not', async () => {
    writeFileSync(at('f'), 'one\r\ntwo\r\nthree\r\n')
    const patch = '--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\r\n-two\r\n+2\n three\r\n'
    expect((await apply(patch)).text).not.toContain('without regard')
    expect(read('f')).toBe('one\r\n2\nthree\r\n')
    writeFileSync(at('f'), ABC)
    await apply(EDIT_TWO.replaceAll('\n', '\r\n'))
    expect(read('f')).toBe(ABC.replace('two', '2'))
  })

  it('FI-10 FI-08 finds hunks away from their line, with other white space at line ends, and says so', async () => {
    writeFileSync(at('f'), `new\nnew\n${ABC.replace('two', 'two  ')}`)
    const { text } = await apply(EDIT_TWO)
    expect(read('f')).toBe(`new\nnew\n${ABC.replace('two', '2')}`)
    expect(text).toContain(
      'Hunk 1: at line 3, 2 below its number; matched without regard to white space at line ends and typographic quotes.',
    )
  })

  it('FI-10 FI-08 a line is found whole: neither within a longer one nor where one follows without its white space', async () => {
    writeFileSync(at('f'), 'xa\nb\nax\na \nb\n')
    await apply('--- f\n+++ f\n@@ @@\n-a\n+A\n b\n')
    expect(read('f')).toBe('xa\nb\nax\nA\nb\n')
  })

  it('FI-10 takes the place nearest to the stated line, after what the hunks before were off', async () => {
    const block = 'begin\nx\nend\n'
    writeFileSync(at('f'), block.repeat(5))
    await apply('--- f\n+++ f\n@@ -8,2 +8,2 @@\n begin\n-x\n+here\n')
    expect(read('f')).toBe(`${block.repeat(2)}begin\nhere\nend\n${block.repeat(2)}`)
    writeFileSync(at('f'), `head\nhead\nhead\n${block.repeat(4)}`)
    await apply('--- f\n+++ f\n@@ -1 +1 @@\n-begin\n+first\n@@ -8 +8 @@\n-x\n+later\n')
    expect(read('f')).toBe(`head\nhead\nhead\nfirst\nx\nend\n${block}begin\nlater\nend\n${block}`)
  })

  it('FI-10 refuses a place that stays ambiguous and lists its lines; nothing is changed', async () => {
    writeFileSync(at('f'), 'x\na\ny\nb\na\n')
    const none = await refuse('--- f\n+++ f\n@@ @@\n-a\n+A\n')
    expect(none).toMatchObject({ code: 'conflict', data: { lines: [2, 5], hunk: 1, path: 'f', patch_line: 3 } })
    expect(none.message).toBe('f, hunk 1 (@@ @@): its lines stand 2 times in f: lines 2, 5. Nothing was changed.')
    writeFileSync(at('f'), 'a\nx\ny\nb\na\n')
    expect(await refuse('--- f\n+++ f\n@@ -3 +3 @@\n-a\n+A\n')).toMatchObject({ data: { lines: [1, 5] } })
    expect(read('f')).toBe('a\nx\ny\nb\na\n')
  })

  it('FI-10 TQ-04 all or nothing: the file and hunk that do not fit are named, with the nearest lines', async () => {
    writeFileSync(at('f'), ABC)
    writeFileSync(at('g'), 'function hello() {\n  return 1\n}\n')
    const patch = `${EDIT_TWO}--- a/g\n+++ b/g\n@@ -1,1 +1,1 @@\n-function hello() {\n+function hi() {\n@@ -2,2 +2,2 @@ hello\n-  return 12\n+  return 2\n }\n`
    const error = await refuse(patch)
    expect(error).toMatchObject({ code: 'not_found', data: { path: 'g', hunk: 2, nearest: { from: 2, to: 3 } } })
    expect(error.message).toMatch(/^g, hunk 2 \(@@ -2,2 \+2,2 @@ hello\): its old lines are not in g from line 2 on\./)
    expect(error.message).toContain('2\t  return 1\n')
    expect([read('f'), read('g').includes('hello')]).toEqual([ABC, true])
  })

  it('FI-10 reads a hunk whose counts are wrong by its lines and says so; what is no line of it is refused', async () => {
    writeFileSync(at('f'), ABC)
    const { text } = await apply('--- a/f\n+++ b/f\n@@ -1,9 +1,7 @@\n one\n-two\n+2\n')
    expect(text).toContain("Hunk 1: its header's counts were wrong.")
    expect(read('f')).toBe(ABC.replace('two', '2'))
    const stray = await refuse('--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-2\n+two\nthree\n')
    expect(stray).toMatchObject({ code: 'invalid_arguments', data: { patch_line: 7 } })
    const extra = await refuse('--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n+more\nfour\n')
    expect(extra).toMatchObject({ code: 'invalid_arguments' })
    expect(read('f')).toBe(ABC.replace('two', '2'))
  })

  it('FI-10 names that follow a header without content are those of the next file', async () => {
    writeFileSync(at('f'), 'f\n')
    await apply('diff --git a/f b/g\nrename from f\nrename to g\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n')
    expect([readdirSync(folder.root).sort(), read('g'), read('n')]).toEqual([['g', 'n'], 'f\n', 'n\n'])
    await apply('diff --git a/g b/g\nold mode 100644\nnew mode 100755\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-n\n+N\n')
    expect([mode('g'), read('g'), read('n')]).toEqual(['755', 'f\n', 'N\n'])
  })

  it('FI-10 lines that begin like headers, words of a mail and a signature are what they are', async () => {
    writeFileSync(at('f'), '-- a\nkeep\n')
    const patch = `From 12ab Mon Sep 17\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n keep\n-- \n2.39.0\n\n`
    await apply(patch)
    expect(read('f')).toBe('++ b\nkeep\n')
  })

  it('FI-10 refuses by name what it never applies: binary patches, links, submodules, renames between plain names', async () => {
    writeFileSync(at('f'), ABC)
    writeFileSync(at('p.png'), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1]))
    const cases = [
      [
        'diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n',
        '"p.png" is patched as binary',
      ],
      [
        'diff --git a/p.png b/p.png\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n',
        '"p.png" is patched as binary',
      ],
      ['--- a/p.png\n+++ b/p.png\n@@ -1 +1 @@\n-x\n+y\n', 'p.png is a binary file'],
      ['diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n', 'is a symbolic link'],
      ['diff --git a/m b/m\nnew file mode 160000\n', 'is a submodule'],
      ['--- a/f\n+++ b/g\n@@ -1 +1 @@\n-one\n+1\n', 'the names differ ("f" and "g")'],
      ['@@ -1 +1 @@\n-one\n+1\n', 'without the file that it is for'],
      ['hello\n', 'no header of a file'],
      ['--- a/f\n+++ b/f\n', '"f" has no hunk'],
    ] as const
    for (const [patch, says] of cases) {
      const error = await refuse(patch)
      expect([error.code, error.message], patch).toEqual(['invalid_arguments', expect.stringContaining(says)])
    }
    expect(readdirSync(folder.root).sort()).toEqual(['f', 'p.png'])
  })
})

describe('ApplyPatch with *** Begin Patch', () => {
  const patchOf = (...lines: string[]) => ['*** Begin Patch', ...lines, '*** End Patch'].join('\n')

  it('FI-10 adds, updates, moves and deletes files', async () => {
    writeFileSync(at('f'), 'class A:\n  def go():\n    pass\n\nclass B:\n  def go():\n    pass\n')
    writeFileSync(at('gone'), 'whatever')
    const { text } = await apply(
      patchOf(
        '*** Add File: new/n.txt',
        '+hello',
        '+',
        '*** Update File: f',
        '*** Move to: sub/g',
        '@@ class B:',
        '@@   def go():',
        '-    pass',
        '+    return 1',
        '*** End of File',
        '*** Delete File: gone',
      ),
    )
    expect(read('new/n.txt')).toBe('hello\n\n')
    expect(read('sub/g')).toBe('class A:\n  def go():\n    pass\n\nclass B:\n  def go():\n    return 1\n')
    expect(readdirSync(folder.root).sort()).toEqual(['new', 'sub'])
    expect(text).toContain('Deleted gone.')
  })

  it('FI-10 a @@ line tells places apart; without one, or where it stands twice itself, the place is ambiguous', async () => {
    const file = 'def a():\n  x\n  y\ndef b():\n  x\n  y\n'
    writeFileSync(at('f'), file)
    const hunk = ['   x', '-  y', '+  z']
    expect(await refuse(patchOf('*** Update File: f', '@@', ...hunk))).toMatchObject({
      code: 'conflict',
      data: { lines: [2, 5] },
    })
    await apply(patchOf('*** Update File: f', '@@ def b', ...hunk))
    expect(read('f')).toBe('def a():\n  x\n  y\ndef b():\n  x\n  z\n')
    writeFileSync(at('f'), file.replaceAll('def b', 'def a'))
    expect(await refuse(patchOf('*** Update File: f', '@@ def a():', ...hunk))).toMatchObject({ code: 'conflict' })
    const missing = await refuse(patchOf('*** Update File: f', '@@ def c():', ...hunk))
    expect(missing.message).toBe('f, hunk 1 (@@ def c():): no line of f reads "def c():". Nothing was changed.')
  })

  it('FI-10 adds at the end, fills an empty file, and refuses lines that have no place', async () => {
    writeFileSync(at('f'), 'a\r\nb')
    writeFileSync(at('empty'), '')
    const add = ['@@', '+c', '*** End of File']
    await apply(patchOf('*** Update File: f', ...add, '*** Update File: empty', '@@', '+c'))
    expect([read('f'), read('empty')]).toEqual(['a\r\nb\r\nc', 'c\n'])
    const error = await refuse(patchOf('*** Update File: f', '@@', '+nowhere'))
    expect(error).toMatchObject({ code: 'conflict' })
    expect(error.message).toContain('no line that would tell its place')
  })

  it('FI-10 refuses a patch that was cut off, files that are there, and what is no section', async () => {
    writeFileSync(at('f'), ABC)
    const cut = await refuse('*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n')
    expect(cut.message).toContain('ends without *** End Patch')
    expect(await refuse(patchOf('*** Add File: f', '+x'))).toMatchObject({ code: 'conflict', data: { path: 'f' } })
    expect(await refuse(patchOf('*** Update File: f', '@@', '-one', '1'))).toMatchObject({ data: { patch_line: 5 } })
    expect(await refuse(patchOf('*** Update File: none', '@@', '-one', '+1'))).toMatchObject({ code: 'not_found' })
    expect(await refuse(patchOf('*** Rename File: f'))).toMatchObject({ code: 'invalid_arguments' })
    expect(read('f')).toBe(ABC)
  })
})

describe('ApplyPatch over several sections', () => {
  it('FI-10 sections about one file work in order, also by another name of it (link, hard link)', async () => {
    writeFileSync(at('f'), ABC)
    symlinkSync('f', at('link'))
    linkSync(at('f'), at('hard'))
    const edit = (name: string, from: string, to: string) => `--- a/${name}\n+++ b/${name}\n@@ @@\n-${from}\n+${to}\n`
    await apply(edit('f', 'one', '1') + edit('link', 'two', '2') + edit('hard', 'three', '3') + edit('f', '1', 'uno'))
    expect(read('f')).toBe('uno\n2\n3\nfour\nfive\nsix\nseven\n')
    expect([statSync(at('f')).ino, readlinkSync(at('link'))]).toEqual([statSync(at('hard')).ino, 'f'])
    await runTool(undo, folder.context(), {})
    expect([read('hard'), statSync(at('f')).ino]).toEqual([ABC, statSync(at('hard')).ino])
  })

  it('FI-10 refuses a rename onto a file that is there or that the patch changes, and changes after a deletion', async () => {
    writeFileSync(at('f'), 'f\n')
    writeFileSync(at('g'), 'g\n')
    const rename = (from: string, to: string) =>
      `diff --git a/${from} b/${to}\nsimilarity index 100%\nrename from ${from}\nrename to ${to}\n`
    const edit = (name: string) => `--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-${name}\n+x\n`
    expect(await refuse(edit('g') + rename('f', 'g'))).toMatchObject({ code: 'conflict', data: { path: 'g' } })
    expect(await refuse(rename('f', 'g'))).toMatchObject({ code: 'conflict' })
    const gone = '--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n'
    expect((await refuse(gone + edit('f'))).message).toContain('deleted or moved by the patch itself')
    expect(
      await refuse('--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/d/e\n@@ -0,0 +1 @@\n+x\n'),
    ).toMatchObject({
      code: 'conflict',
    })
    expect(await refuse('--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n')).toMatchObject({ code: 'conflict' })
    expect([read('f'), read('g'), readdirSync(folder.root).length]).toEqual(['f\n', 'g\n', 2])
    await apply(gone + rename('g', 'f'))
    expect([readdirSync(folder.root), read('f')]).toEqual([['f'], 'g\n'])
  })

  it('FI-10 FI-11 dry_run shows all diffs and writes nothing; the preview says the same', async () => {
    writeFileSync(at('f'), ABC)
    const patch = `${EDIT_TWO}--- /dev/null\n+++ b/new/n\n@@ -0,0 +1 @@\n+fresh\n`
    const { text, facts } = await apply(patch, { dry_run: true })
    expect(text).toContain('Dry run, nothing was written; the patch fits 2 files:')
    expect(text).toContain('+fresh')
    expect(facts).toMatchObject({ dry_run: true, files: [{ path: 'f' }, { path: 'new/n', did: 'created' }] })
    const preview = await applyPatch.preview?.(folder.context(), { patch })
    expect(preview).toContain('Edits f: 1 hunk')
    expect(preview).toContain('-two\n+2')
    expect(preview).toContain('Creates new/n')
    expect([read('f'), existsSync(at('new'))]).toEqual([ABC, false])
  })

  it('FI-10 PO-02 names every path for rules, and none where it cannot be read', () => {
    const targets = (patch: string) => applyPatch.targets?.({ patch })
    expect(targets(`${EDIT_TWO}--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n`)).toEqual([
      { path: 'f' },
      { path: 'g', follow: false },
    ])
    expect(
      targets('diff --git a/a b/b\nrename from a\nrename to b\ndiff --git a/a b/c\ncopy from a\ncopy to c\n'),
    ).toEqual([{ path: 'a', follow: false }, { path: 'b', follow: false }, { path: 'c', follow: false }, { path: 'a' }])
    expect(targets('nonsense')).toEqual([])
    expect(applyPatch.countsAs).toEqual(['Read', 'Write', 'Edit', 'Move', 'Delete'])
  })

  it('FI-10 GU-50 touches nothing outside of the workspace', async () => {
    writeFileSync(join(folder.out, 'secret'), 'one\n')
    symlinkSync(folder.out, at('out'))
    for (const path of ['../out/secret', 'out/secret', join(folder.out, 'secret')]) {
      const patch = `*** Begin Patch\n*** Update File: ${path}\n@@\n-one\n+1\n*** End Patch`
      expect(await refuse(patch), path).toMatchObject({ code: 'path_denied' })
      const made = `*** Begin Patch\n*** Add File: ${path}2\n+1\n*** End Patch`
      expect(await refuse(made), path).toMatchObject({ code: 'path_denied' })
    }
    expect([readdirSync(folder.out), readFileSync(join(folder.out, 'secret'), 'utf8')]).toEqual([['secret'], 'one\n'])
  })
})

describe('ApplyPatch that fails while it writes', () => {
  /** The second file's folder lets nothing be written, though all could be read. */
  function prepare() {
    writeFileSync(at('a'), 'a\n', { mode: 0o755 })
    mkdirSync(at('deep'))
    writeFileSync(at('deep/z'), 'z\n')
    return [
      'diff --git a/a b/moved\nold mode 100755\nnew mode 100644\nrename from a\nrename to moved\n--- a/a\n+++ b/moved\n@@ -1 +1 @@\n-a\n+A\n',
      '--- /dev/null\n+++ b/made/new\n@@ -0,0 +1 @@\n+n\n',
      '--- a/deep/z\n+++ b/deep/z\n@@ -1 +1 @@\n-z\n+Z\n',
    ].join('')
  }

  it('FI-10 FC-E02 puts back what was written, when a later file was changed meanwhile', async () => {
    const patch = prepare()
    const context = folder.context()
    const { journal } = context
    // Another program comes between: right before the last file's earlier content would be kept.
    const racing: typeof journal = {
      records: journal.records,
      record(change, before) {
        const record = journal.record(change, before)
        if (change.path.endsWith('/made/new')) writeFileSync(at('deep/z'), 'somebody else\n')
        return record
      },
    }
    const error = await refusal(() => apply(patch, {}, { ...context, journal: racing }))
    expect(error).toMatchObject({ code: 'conflict', data: { path: 'deep/z' } })
    expect(error.message).toMatch(/Nothing is changed: what was written before it \(\d\) was put back\.$/)
    expect(readdirSync(folder.root).sort()).toEqual(['a', 'deep'])
    expect([read('a'), mode('a'), read('deep/z')]).toEqual(['a\n', '755', 'somebody else\n'])
  })

  it('FI-10 says exactly what stands where putting back fails too', async () => {
    const patch = prepare()
    const context = folder.context()
    const { journal } = context
    const racing: typeof journal = {
      records: journal.records,
      record(change, before) {
        const record = journal.record(change, before)
        if (change.path.endsWith('/made/new')) {
          writeFileSync(at('deep/z'), 'somebody else\n')
          writeFileSync(at('moved'), 'somebody else too\n')
        }
        return record
      },
    }
    const error = await refusal(() => apply(patch, {}, { ...context, journal: racing }))
    expect(error).toMatchObject({ code: 'conflict', data: { effects_possible: true } })
    expect(error.message).toContain('Not everything could be put back')
    expect(error.message).toContain('These changes stand: modified a; moved a to moved.')
    expect(read('moved')).toBe('somebody else too\n')
    expect(existsSync(at('made'))).toBe(false)
  })

  it('FI-10 a cancelled patch is put back too', async () => {
    const patch = prepare()
    const context = folder.context()
    const stop = new AbortController()
    const { journal } = context
    const stopping: typeof journal = {
      records: journal.records,
      record(change, before) {
        if (change.path.endsWith('/made/new')) stop.abort()
        return journal.record(change, before)
      },
    }
    const given = { ...context, journal: stopping, signal: stop.signal }
    expect(await refusal(() => apply(patch, {}, given))).toMatchObject({ code: 'cancelled' })
    expect(readdirSync(folder.root).sort()).toEqual(['a', 'deep'])
    expect([read('a'), mode('a'), read('deep/z')]).toEqual(['a\n', '755', 'z\n'])
  })
})

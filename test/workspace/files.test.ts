import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { changeFile } from '../../src/workspace/files.js'
import { journalContent, readJournal, sha256 } from '../../src/workspace/journal.js'
import { bundleProgram } from '../helpers/bundle.js'
import { createSandbox, refusal, type Sandbox } from '../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const to = (content: string) => () => Buffer.from(content)
const NOBODY = 65_534
const ONCE = fileURLToPath(new URL('../fixtures/change-once.ts', import.meta.url))
const isRoot = process.getuid?.() === 0

it('FI-06 FI-12 a new file makes its missing folders, each recorded before, with the modes that the system gives', async () => {
  const context = sandbox.context()
  const changed = await changeFile(context, 'a/b/c.txt', to('new'), { create: true })
  expect(changed).toMatchObject({
    created: true,
    before: undefined,
    display: 'a/b/c.txt',
    sha256: sha256(Buffer.from('new')),
  })
  writeFileSync(at('plain'), '')
  expect(statSync(at('a/b/c.txt')).mode).toBe(statSync(at('plain')).mode)
  expect(context.journal.records().map((record) => [record.kind, record.path])).toEqual([
    ['mkdir', at('a')],
    ['mkdir', at('a/b')],
    ['create', at('a/b/c.txt')],
  ])
  expect(readdirSync(at('a/b'))).toEqual(['c.txt'])
})

it('FI-06 without create a missing file is not found, and nothing is made', async () => {
  expect((await refusal(() => changeFile(sandbox.context(), 'a/b', to('x')))).code).toBe('not_found')
  expect((await refusal(() => changeFile(sandbox.context(), 'a/', to('x'), { create: true }))).code).toBe(
    'invalid_arguments',
  )
  expect(readdirSync(sandbox.root)).toEqual([])
})

it('FI-06 mode and owner are kept (FC-E12)', async () => {
  for (const mode of [0o755, 0o600, 0o644, 0o440 | 0o200]) {
    const name = `m${mode.toString(8)}`
    writeFileSync(at(name), 'old')
    chmodSync(at(name), mode)
    if (isRoot) chownSync(at(name), 1234, 2345)
    const owner = statSync(at(name))
    await changeFile(sandbox.context(), name, to('new'))
    expect(readFileSync(at(name), 'utf8')).toBe('new')
    const now = statSync(at(name))
    expect([now.mode & 0o7777, now.uid, now.gid]).toEqual([mode, owner.uid, owner.gid])
  }
})

it('FI-14 the content and mode before a change are kept, byte for byte', async () => {
  const before = Buffer.from([0, 255, 10, 13, 10])
  writeFileSync(at('bin'), before)
  chmodSync(at('bin'), 0o751)
  const context = sandbox.context()
  await changeFile(context, 'bin', to('new'))
  const [record] = readJournal(sandbox.journalDir, context.operationId)
  expect(record).toMatchObject({ kind: 'modify', path: at('bin'), mode: 0o751, beforeSha256: sha256(before), size: 5 })
  expect(journalContent(sandbox.journalDir, context.operationId, 0)).toEqual(before)
})

it('FI-06 the change of a link inside changes its target and leaves the link', async () => {
  writeFileSync(at('target'), 'old')
  symlinkSync('target', at('link'))
  const changed = await changeFile(sandbox.context(), 'link', to('new'))
  expect(changed.display).toBe('target')
  expect(readdirSync(sandbox.root).sort()).toEqual(['link', 'target'])
  expect(readFileSync(at('target'), 'utf8')).toBe('new')
  symlinkSync('later', at('dangling'))
  await changeFile(sandbox.context(), 'dangling', to('made'), { create: true })
  expect(readFileSync(at('later'), 'utf8')).toBe('made')
})

it('FI-06 a file with other hard links is written in place, so that they stay one file (FC-E18)', async () => {
  writeFileSync(at('a'), 'a longer content')
  linkSync(at('a'), at('b'))
  const context = sandbox.context()
  await changeFile(context, 'a', to('short'))
  expect(readFileSync(at('b'), 'utf8')).toBe('short')
  expect(statSync(at('a')).ino).toBe(statSync(at('b')).ino)
  expect(context.journal.records()[0]).toMatchObject({ kind: 'modify', inPlace: true })
})

it('FI-06 a refused change writes nothing, records nothing and leaves no temporary file (FC-E19)', async () => {
  writeFileSync(at('f'), 'old')
  const context = sandbox.context()
  const refuse = () => {
    throw new KikiError('conflict', 'Edit 1 does not match.')
  }
  expect((await refusal(() => changeFile(context, 'f', refuse))).message).toBe('Edit 1 does not match.')
  expect((await refusal(() => changeFile(context, 'new/deep', refuse, { create: true }))).code).toBe('conflict')
  expect(readdirSync(sandbox.root)).toEqual(['f'])
  expect(context.journal.records()).toEqual([])
  expect(readFileSync(at('f'), 'utf8')).toBe('old')
})

it('FI-06 content that stays the same is neither written nor recorded', async () => {
  writeFileSync(at('f'), 'same')
  const before = statSync(at('f'), { bigint: true })
  const context = sandbox.context()
  await changeFile(context, 'f', to('same'))
  expect(statSync(at('f'), { bigint: true })).toMatchObject({ ino: before.ino, mtimeNs: before.mtimeNs })
  expect(context.journal.records()).toEqual([])
})

it('FI-15 a file that another program replaced or changed between read and write is a conflict, and its content stays', async () => {
  for (const meddle of [
    () => {
      writeFileSync(at('other'), 'theirs')
      renameSync(at('other'), at('f'))
    },
    () => writeFileSync(at('f'), 'theirs'),
  ]) {
    writeFileSync(at('f'), 'old')
    const change = () => {
      meddle()
      return Buffer.from('mine')
    }
    expect((await refusal(() => changeFile(sandbox.context(), 'f', change))).code).toBe('conflict')
    expect(readFileSync(at('f'), 'utf8')).toBe('theirs')
    expect(readdirSync(sandbox.root)).toEqual(['f'])
  }
})

it('FI-15 a file that appears while it is being made is a conflict and stays; made folders go away again', async () => {
  const change = () => {
    writeFileSync(at('f'), 'theirs')
    return Buffer.from('mine')
  }
  expect((await refusal(() => changeFile(sandbox.context(), 'f', change, { create: true }))).code).toBe('conflict')
  expect(readFileSync(at('f'), 'utf8')).toBe('theirs')
  const context = sandbox.context()
  const full = { ...context, journal: { ...context.journal, record: failingOn('create', context.journal.record) } }
  expect((await refusal(() => changeFile(full, 'x/y/z', to('n'), { create: true }))).code).toBe('internal_error')
  expect(readdirSync(sandbox.root)).toEqual(['f'])
})

type Record = ReturnType<Sandbox['context']>['journal']['record']

/** A journal whose disk is full for one kind of record. */
function failingOn(kind: string, record: Record): Record {
  return (change, before) => {
    if (change.kind === kind) throw new KikiError('internal_error', 'The disk is full.')
    return record(change, before)
  }
}

it('FI-14 what cannot be kept is not changed', async () => {
  writeFileSync(at('f'), 'old')
  writeFileSync(sandbox.journalDir, 'not a folder')
  expect((await refusal(() => changeFile(sandbox.context(), 'f', to('new')))).code).toBe('internal_error')
  expect(readFileSync(at('f'), 'utf8')).toBe('old')
  expect(readdirSync(sandbox.root)).toEqual(['f'])
})

it('FI-15 many changes of one file at the same moment all apply, also through a hard link and a link', async () => {
  writeFileSync(at('f'), '')
  linkSync(at('f'), at('hard'))
  symlinkSync('f', at('soft'))
  const names = ['f', 'hard', 'soft']
  await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      changeFile(sandbox.context(), names[index % 3] ?? 'f', (current) => Buffer.from(`${current}${index};`)),
    ),
  )
  const parts = readFileSync(at('f'), 'utf8').split(';').slice(0, -1)
  expect(parts.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index))
})

it('FI-06 a folder that was moved away while a change was made gets nothing', async () => {
  mkdirSync(at('d'))
  const change = () => {
    renameSync(at('d'), join(sandbox.out, 'd'))
    return Buffer.from('mine')
  }
  expect((await refusal(() => changeFile(sandbox.context(), 'd/f', change, { create: true }))).code).toBe('conflict')
  expect(readdirSync(join(sandbox.out, 'd'))).toEqual([])
  expect(existsSync(at('d'))).toBe(false)
})

it('FI-06 a read-only file is not replaced', { timeout: 60_000 }, async () => {
  writeFileSync(at('f'), 'old')
  writeFileSync(at('g'), 'old')
  chmodSync(at('f'), 0o444)
  const program = await bundleProgram(ONCE, join(sandbox.base, 'bundle'))
  chmodSync(sandbox.base, 0o755)
  // The superuser may write everything, so the change is made by a child without its rights.
  if (isRoot) for (const path of [sandbox.root, sandbox.home, at('f'), at('g')]) chownSync(path, NOBODY, NOBODY)
  const change = (name: string) =>
    spawnSync(process.execPath, [program, sandbox.root, sandbox.home, name], {
      encoding: 'utf8',
      ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
    }).stdout
  expect(change('f')).toBe('permission_denied')
  expect(readFileSync(at('f'), 'utf8')).toBe('old')
  expect(change('g')).toBe('changed')
})

it('FI-06 a cancelled operation changes nothing', async () => {
  const context = sandbox.context({ signal: AbortSignal.abort() })
  expect((await refusal(() => changeFile(context, 'f', to('x'), { create: true }))).code).toBe('cancelled')
  expect(readdirSync(sandbox.root)).toEqual([])
})

import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHomeFence } from '../../src/workspace/fence.js'
import { openFile, resolvePath } from '../../src/workspace/files.js'
import { platformPath } from '../../src/workspace/paths.js'
import { createSpellings } from '../../src/workspace/spelling.js'
import { openWorkspace } from '../../src/workspace/workspace.js'
import { type CaselessDisk, caselessDisk, noCaselessDisk } from '../helpers/caseless-disk.js'
import { refusal } from '../helpers/tool-context.js'

const why = noCaselessDisk()
if (why !== undefined) console.warn(`skipped: a disk without letter cases, because ${why}`)

describe('on a disk with letter cases', () => {
  let root: string
  beforeEach(() => {
    root = realpathSync.native(mkdtempSync(join(tmpdir(), 'kiki-cases-')))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it('PA-04 other spellings are other files: two names of one file are not taken for it', () => {
    writeFileSync(join(root, 'a'), '')
    linkSync(join(root, 'a'), join(root, 'A'))
    writeFileSync(join(root, '1'), '')
    mkdirSync(join(root, 'empty'))
    const folds = createSpellings('linux')
    expect(['a', 'A', '1', 'missing', 'empty/x', 'no/such/folder'].map((name) => folds(join(root, name)))).toEqual(
      Array(6).fill(false),
    )
  })

  it('PA-04 macOS and Windows are taken to fold names; a path keeps its spelling elsewhere', () => {
    expect([createSpellings('darwin')('/x'), createSpellings('win32')('/x')]).toEqual([true, true])
    expect(platformPath('c:/a.', 'linux')).toBe('c:/a.')
    expect(platformPath('c:/a.', 'win32')).toBe('C:\\a')
    expect(() => platformPath('nul', 'win32')).toThrow(/names a device of Windows/)
  })
})

describe.skipIf(why !== undefined)('on a disk without letter cases', () => {
  let disk: CaselessDisk
  beforeEach(() => {
    disk = caselessDisk()
  })
  afterEach(() => disk.remove())

  it('PA-04 it is known, also in an empty folder and for what is not there', () => {
    mkdirSync(join(disk.root, 'empty'))
    writeFileSync(join(disk.root, 'Secret.txt'), '')
    const folds = createSpellings('linux')
    expect(['SECRET.TXT', 'missing', 'empty/x', 'EMPTY/y'].map((name) => folds(join(disk.root, name)))).toEqual(
      Array(4).fill(true),
    )
  })

  it("PA-04 PA-03 FC-P14 no spelling of Kiki's home is let through", async () => {
    mkdirSync(join(disk.root, '.kiki/keys'), { recursive: true })
    writeFileSync(join(disk.root, '.kiki/kiki.db'), 'db')
    writeFileSync(join(disk.root, 'plain'), 'plain')
    const fence = createHomeFence(join(disk.root, '.kiki'))
    const workspace = openWorkspace({ root: disk.root, dirs: [], home: fence })
    for (const path of ['.KIKI/kiki.db', '.Kiki/KIKI.DB', `${disk.root}/.kIKI/new`, '.KIKI']) {
      expect((await refusal(() => openFile(workspace, path))).code, path).toBe('path_denied')
      expect((await refusal(() => resolvePath(workspace, path))).code, path).toBe('path_denied')
    }
    openFile(workspace, 'PLAIN').close()
  })
})

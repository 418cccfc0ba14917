import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { changeFile, openDirectory, openFile, resolvePath } from '../../src/workspace/files.js'
import { bindWorkspace, openWorkspace, type Workspace } from '../../src/workspace/workspace.js'
import { createSandbox, refusal, type Sandbox } from '../helpers/tool-context.js'

let sandbox: Sandbox
let workspace: Workspace
beforeEach(() => {
  sandbox = createSandbox({ extraDirs: ['extra'] })
  workspace = sandbox.context().workspace
  mkdirSync(join(sandbox.root, 'src', 'deep'), { recursive: true })
  writeFileSync(join(sandbox.root, 'src', 'deep', 'a.txt'), 'a')
  writeFileSync(join(sandbox.out, 'secret'), 'secret')
  writeFileSync(join(sandbox.base, 'extra', 'e.txt'), 'extra')
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)

function contentOf(path: string, from: Workspace = workspace): string {
  const file = openFile(from, path)
  try {
    return readFileSync(file.fd, 'utf8')
  } finally {
    file.close()
  }
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}

const codeOf = async (action: () => unknown) => (await refusal(action)).code

describe('paths', () => {
  it('PA-01 relative and absolute paths inside the roots open the same file', () => {
    for (const path of ['src/deep/a.txt', './src//deep/./a.txt', 'src/deep/../deep/a.txt', at('src/deep/a.txt')]) {
      expect(contentOf(path)).toBe('a')
    }
    expect(contentOf('../ws/src/deep/a.txt')).toBe('a')
    expect(resolvePath(workspace, 'src/deep/..')).toMatchObject({ path: at('src'), display: 'src', type: 'directory' })
    expect(resolvePath(workspace, '.')).toMatchObject({ display: '.', type: 'directory' })
  })

  it('PA-01 an extra directory is inside, also by .. from the workspace, and is shown absolute', () => {
    const path = join(sandbox.base, 'extra', 'e.txt')
    expect(contentOf(path)).toBe('extra')
    expect(contentOf('../extra/e.txt')).toBe('extra')
    expect(contentOf('src/../../extra/e.txt')).toBe('extra')
    expect(resolvePath(workspace, '../extra/e.txt').display).toBe(path)
  })

  it('PA-01 containment is by whole components: siblings with the same beginning are outside (FC-P05, FC-P11)', async () => {
    for (const suffix of ['-evil', '_x', '\u200b', '.']) {
      const sibling = `${sandbox.root}${suffix}`
      mkdirSync(sibling)
      writeFileSync(join(sibling, 'f'), 'evil')
      for (const path of [join(sibling, 'f'), `../ws${suffix}/f`, join(sandbox.root, '..', `ws${suffix}`, 'new')]) {
        expect(await codeOf(() => openFile(workspace, path)), path).toBe('path_denied')
        expect(await codeOf(() => changeFile(sandbox.context(), path, () => Buffer.from('x'), { create: true }))).toBe(
          'path_denied',
        )
      }
      expect(readdirSync(sibling)).toEqual(['f'])
    }
    mkdirSync(join(sandbox.base, 'WS'))
    expect(await codeOf(() => openFile(workspace, '../WS/f'))).toBe('path_denied')
  })

  it('PA-01 outside is refused alike whether or not something is there, and the hint names the roots', async () => {
    const there = await refusal(() => openFile(workspace, join(sandbox.out, 'secret')))
    const nothing = await refusal(() => openFile(workspace, join(sandbox.out, 'nothing')))
    expect([there.code, nothing.code]).toEqual(['path_denied', 'path_denied'])
    expect(there.hint).toBe(nothing.hint)
    expect(there.hint).toContain(sandbox.root)
    for (const path of ['..', '../..', '../../../../../../etc/passwd', '/', '/proc/self/root/etc/passwd']) {
      expect(await codeOf(() => openFile(workspace, path)), path).toBe('path_denied')
    }
  })

  it('PA-01 an empty path, a NUL byte and half a character are invalid arguments', async () => {
    for (const path of ['', 'a\0b', 'src/\ud800', 'x'.repeat(5000), 'y'.repeat(300)]) {
      expect(await codeOf(() => openFile(workspace, path))).toBe('invalid_arguments')
    }
  })

  it('PA-01 a missing name says which, with near names: other case, other Unicode form, few edits', async () => {
    writeFileSync(at('src', 'Re\u0301sume\u0301.md'), '')
    writeFileSync(at('src', 'config.json'), '')
    const hintOf = async (path: string) => (await refusal(() => openFile(workspace, path))).data?.near
    expect(await hintOf('src/R\u00e9sum\u00e9.md')).toEqual(['src/Re\u0301sume\u0301.md'])
    expect(await hintOf('src/CONFIG.json')).toEqual(['src/config.json'])
    expect(await hintOf('src/confg.json')).toEqual(['src/config.json'])
    expect(await hintOf('scr/config.json')).toEqual(['src'])
    expect(await hintOf('src/zzzzzz')).toEqual([])
  })

  it('PA-01 a file is no folder, and closes everything that was held', async () => {
    const before = openDescriptors()
    expect(await codeOf(() => openFile(workspace, 'src/deep/a.txt/x'))).toBe('invalid_arguments')
    expect(await codeOf(() => openFile(workspace, 'src/nothing/../deep/a.txt'))).toBe('not_found')
    expect(await codeOf(() => openFile(workspace, 'src/none'))).toBe('not_found')
    expect(await codeOf(() => openFile(workspace, '../out/secret'))).toBe('path_denied')
    contentOf('src/deep/a.txt')
    openDirectory(workspace, 'src').close()
    expect(openDescriptors()).toBe(before)
  })
})

describe('links', () => {
  it('PA-02 links that stay inside work: relative, absolute, through .., to an extra directory, in a chain', () => {
    symlinkSync('src/deep', at('rel'))
    symlinkSync(at('src', 'deep', 'a.txt'), at('abs'))
    symlinkSync('../../rel/a.txt', at('src', 'deep', 'up'))
    symlinkSync(join(sandbox.base, 'extra'), at('extra'))
    symlinkSync('../extra/e.txt', at('over'))
    symlinkSync('abs', at('chain'))
    for (const path of ['rel/a.txt', 'abs', 'src/deep/up', 'chain', 'rel/../deep/a.txt'])
      expect(contentOf(path)).toBe('a')
    expect(contentOf('extra/e.txt')).toBe('extra')
    expect(contentOf('over')).toBe('extra')
    expect(resolvePath(workspace, 'chain').display).toBe('src/deep/a.txt')
    expect(resolvePath(workspace, 'chain', { follow: false })).toMatchObject({ display: 'chain', type: 'link' })
  })

  it('PA-02 links out are refused for reading and writing, dangling ones and loops too (FC-P15)', async () => {
    symlinkSync(sandbox.out, at('dir'))
    symlinkSync('../out/secret', at('file'))
    symlinkSync(join(sandbox.out, 'new'), at('dangling'))
    symlinkSync('dir', at('chain'))
    symlinkSync('/proc/self/cwd', at('proc'))
    for (const path of [
      'dir/secret',
      'file',
      'dangling',
      'chain/secret',
      'chain/new',
      'proc/x',
      'dir/../ws/src/deep/a.txt',
    ]) {
      expect(await codeOf(() => openFile(workspace, path)), path).toBe('path_denied')
      const write = () => changeFile(sandbox.context(), path, () => Buffer.from('x'), { create: true })
      expect(await codeOf(write), path).toBe('path_denied')
    }
    symlinkSync('loop-b', at('loop-a'))
    symlinkSync('loop-a', at('loop-b'))
    expect(await codeOf(() => openFile(workspace, 'loop-a'))).toBe('path_denied')
    expect(readdirSync(sandbox.out)).toEqual(['secret'])
    expect(readFileSync(join(sandbox.out, 'secret'), 'utf8')).toBe('secret')
  })
})

describe('what is not a regular file', () => {
  it('GU-51 FI-04 a FIFO, a socket, a device and a folder are refused at once for reading and writing (FC-R02, FC-R05)', async () => {
    expect(spawnSync('mkfifo', [at('pipe')]).status).toBe(0)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(at('socket'), resolve))
    const devices = openWorkspace({ root: sandbox.root, dirs: ['/dev'], home: sandbox.fence })
    try {
      for (const path of ['pipe', 'socket', '/dev/zero', 'src']) {
        const context = sandbox.context({ workspace: devices })
        const start = performance.now()
        const read = await refusal(() => openFile(devices, path))
        const write = await refusal(() => changeFile(context, path, () => Buffer.from('x'), { create: true }))
        expect(performance.now() - start).toBeLessThan(2000)
        for (const error of [read, write]) {
          expect(error.code).toBe('invalid_arguments')
          expect(error.message).toContain('not a regular file')
        }
      }
      symlinkSync('/dev/zero', at('z'))
      expect(await codeOf(() => openFile(workspace, 'z'))).toBe('path_denied')
    } finally {
      server.close()
    }
  })

  it('FI-04 an empty file opens with size 0', () => {
    writeFileSync(at('empty'), '')
    const file = openFile(workspace, 'empty')
    expect(file.stat.size).toBe(0n)
    file.close()
  })
})

describe('the root', () => {
  it('GU-52 SE-09 a root that is itself a link is made canonical once, and keeps working under its real path', () => {
    symlinkSync(sandbox.root, join(sandbox.base, 'alias'))
    const root = bindWorkspace(join(sandbox.base, 'alias'), sandbox.fence)
    expect(root).toBe(realpathSync.native(sandbox.root))
    const opened = openWorkspace({ root, dirs: [], home: sandbox.fence })
    expect(contentOf('src/deep/a.txt', opened)).toBe('a')
    // An absolute path by the alias is the same file.
    expect(contentOf(join(sandbox.base, 'alias', 'src/deep/a.txt'), opened)).toBe('a')
    rmSync(join(sandbox.base, 'alias'))
    symlinkSync(sandbox.out, join(sandbox.base, 'alias'))
    expect(contentOf('src/deep/a.txt', openWorkspace({ root, dirs: [], home: sandbox.fence }))).toBe('a')
  })

  it('SE-09 a folder that is gone or replaced by a link makes the session unavailable, also between open and use', async () => {
    renameSync(sandbox.root, `${sandbox.root}-moved`)
    const open = () => openWorkspace({ root: sandbox.root, dirs: [], home: sandbox.fence })
    const gone = await refusal(open)
    expect(gone.code).toBe('session_unavailable')
    expect(gone.message).toContain(sandbox.root)
    expect(await codeOf(() => openFile(workspace, 'src/deep/a.txt'))).toBe('session_unavailable')
    symlinkSync(`${sandbox.root}-moved`, sandbox.root)
    expect(await codeOf(open)).toBe('session_unavailable')
    expect(await codeOf(() => openFile(workspace, 'src/deep/a.txt'))).toBe('session_unavailable')
  })

  it('SE-09 a link in place of a folder above the root is noticed too', async () => {
    mkdirSync(at('inner'))
    writeFileSync(at('inner', 'f'), 'f')
    const inner = openWorkspace({ root: at('inner'), dirs: [], home: sandbox.fence })
    renameSync(sandbox.root, `${sandbox.root}-moved`)
    symlinkSync(`${sandbox.root}-moved`, sandbox.root)
    expect(await codeOf(() => openFile(inner, 'f'))).toBe('session_unavailable')
  })

  it('SE-09 PA-03 a file, a missing folder, the home and folders in it cannot be bound', async () => {
    const bind = (path: string) => codeOf(() => bindWorkspace(path, sandbox.fence))
    mkdirSync(join(sandbox.home, 'media'))
    symlinkSync(join(sandbox.home, 'media'), join(sandbox.base, 'to-media'))
    expect(await bind(join(sandbox.root, 'src/deep/a.txt'))).toBe('invalid_arguments')
    expect(await bind(join(sandbox.root, 'none'))).toBe('not_found')
    for (const path of [sandbox.home, join(sandbox.home, 'media'), join(sandbox.base, 'to-media')]) {
      expect(await bind(path)).toBe('path_denied')
    }
    expect(existsSync(sandbox.home)).toBe(true)
  })
})

describe('what a refusal says', () => {
  const messageOf = async (path: string) => (await refusal(() => openFile(workspace, path))).message

  it('PA-02 a link that leads outside is refused as one, by its own name', async () => {
    symlinkSync(join(sandbox.out, 'secret'), at('outfile'))
    symlinkSync('../../out', at('src', 'up'))
    symlinkSync('src/up', at('chain'))
    symlinkSync('src', at('inside'))
    const says = (link: string) => `"${link}" is a link that leads outside this session's workspace.`
    expect(await messageOf('outfile')).toBe(says('outfile'))
    expect(await messageOf(at('outfile'))).toBe(says('outfile'))
    expect(await messageOf('src/up/secret')).toBe(says('src/up'))
    expect(await messageOf('inside/up/secret')).toBe(says('src/up'))
    expect(await messageOf('chain/secret')).toBe(says('chain'))
    // Here the path leads out, not the link.
    for (const path of ['../out/secret', 'inside/../../out/secret', join(sandbox.out, 'secret')]) {
      expect(await messageOf(path)).toBe(`"${path}" is outside this session's workspace.`)
    }
  })

  it('a missing entry is named once, and with the folder that it is missing in where that says more', async () => {
    symlinkSync('src', at('inside'))
    for (const path of ['nope.txt', './nope.txt', 'src/nope.txt', at('nope.txt')]) {
      expect(await messageOf(path)).toBe(`There is no "${path}".`)
    }
    expect(await messageOf('src/nope/a.txt')).toBe('There is no "src/nope/a.txt": "src" has no entry "nope".')
    expect(await messageOf('inside/nope')).toBe('There is no "inside/nope": "src" has no entry "nope".')
  })
})

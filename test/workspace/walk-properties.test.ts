import {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, sep } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { openFile, resolvePath } from '../../src/workspace/files.js'
import { openWorkspace } from '../../src/workspace/workspace.js'
import { createSandbox } from '../helpers/tool-context.js'

/** Twins in letter case and Unicode form, and names that look like syntax. */
const NAMES = ['a', 'A', 'b', 'é', 'e\u0301', '...', 'c d', '.h']
const name = fc.constantFrom(...NAMES)
const relative = fc
  .array(fc.oneof({ weight: 5, arbitrary: name }, fc.constantFrom('..', '.', '')), { minLength: 1, maxLength: 6 })
  .map((names) => names.join('/'))
  .filter((path) => path !== '')
const entry = fc.record({
  at: fc.array(name, { minLength: 1, maxLength: 3 }),
  kind: fc.oneof(
    fc.constantFrom('file', 'folder', 'outside file'),
    relative.map((target) => ({ target })),
    relative.map((target) => ({ absolute: target })),
    fc.constantFrom(
      { target: '../../out/secret' },
      { target: '../out' },
      { absolute: '../out/secret' },
      { absolute: '../home/config' },
    ),
  ),
})

it('PA-01 PA-02 in any tree the walk leads where realpath does and stays inside by components, or refuses', () => {
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 14 }),
      fc.array(relative, { minLength: 1, maxLength: 12 }),
      (tree, paths) => {
        const sandbox = createSandbox({ extraDirs: ['ws-twin'] })
        try {
          writeFileSync(join(sandbox.out, 'secret'), 'SECRET')
          writeFileSync(join(sandbox.home, 'config'), 'SECRET')
          for (const { at, kind } of tree) plant(sandbox.root, at, kind)
          const workspace = openWorkspace({
            root: sandbox.root,
            dirs: [join(sandbox.base, 'ws-twin')],
            home: sandbox.fence,
          })
          for (const path of [...paths, ...paths.map((one) => join(sandbox.root, sep, one))]) check(workspace, path)
        } finally {
          sandbox.remove()
        }
      },
    ),
    { numRuns: 150 },
  )
})

type Kind = 'file' | 'folder' | 'outside file' | { target: string } | { absolute: string }

/** Puts an entry where it fits; one that does not is left out. */
function plant(root: string, at: string[], kind: Kind): void {
  let folder = root
  for (const part of at.slice(0, -1)) {
    folder = join(folder, part)
    const there = lstatSync(folder, { throwIfNoEntry: false })
    if (there === undefined) mkdirSync(folder)
    else if (!there.isDirectory()) return
  }
  const path = join(folder, at.at(-1) ?? '')
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return
  if (kind === 'folder') mkdirSync(path)
  else if (kind === 'file' || kind === 'outside file') writeFileSync(path, 'inside')
  else if ('target' in kind) symlinkSync(kind.target === '' ? '.' : kind.target, path)
  else symlinkSync(`${root}/${kind.absolute}`, path)
}

function check(workspace: ReturnType<typeof openWorkspace>, path: string): void {
  const absolute = path.startsWith(sep) ? path : `${workspace.root}/${path}`
  const real = realOf(absolute)
  const inside = real !== undefined && workspace.roots.some((root) => real === root || real.startsWith(root + sep))
  const before = readdirSync('/proc/self/fd').length
  const found = attempt(() => resolvePath(workspace, path))
  if (found !== undefined && found.type !== undefined) {
    // POSIX alone refuses a file's name with a slash behind it.
    expect(found.path).toBe(real ?? realOf(absolute.replace(/[/.]+$/, '')))
    expect(inside || real === undefined).toBe(true)
  }
  if (inside) expect(found?.path, path).toBe(real)
  const opened = attempt(() => openFile(workspace, path))
  if (opened !== undefined) {
    const [own, there] = [fstatSync(opened.fd), lstatSync(opened.path)]
    expect([own.dev, own.ino]).toEqual([there.dev, there.ino])
    expect(readFileSync(opened.fd, 'utf8')).toBe('inside')
    closeSync(opened.fd)
  }
  expect(readdirSync('/proc/self/fd').length).toBe(before)
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    return undefined
  }
}

/** Undefined where it was refused; anything but a refusal is a fault. */
function attempt<T>(action: () => T): T | undefined {
  try {
    return action()
  } catch (error) {
    if (error instanceof KikiError && error.code !== 'internal_error') return undefined
    throw error
  }
}

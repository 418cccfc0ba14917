import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { applyPatch } from '../../src/tools/files/apply-patch.js'
import { undo } from '../../src/tools/files/undo.js'
import { createRandom, type Random } from '../helpers/random.js'
import { createSandbox, runTool, type Sandbox } from '../helpers/tool-context.js'

const HAS_GIT = spawnSync('git', ['--version']).status === 0
if (!HAS_GIT) console.warn('skipped: patches that git writes, because there is no git')

let folder: Sandbox
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

const NAMES = ['a', 'b c', 'sub/ä', 'sub/"q"', 'sub/deep/d.txt', 'e\ttab']
const WORDS = ['one', 'two', '', '  x', '-- y', '++ z', 'é', '@@ -1 +1 @@', '\\ No', 'diff --git a/a b/a']

/** Content that is worth a patch: the same few lines, so that places are alike, of either style, with and without an end. */
function contentOf(random: Random): string {
  const eol = random.chance(0.3) ? '\r\n' : '\n'
  const lines = Array.from({ length: random.below(30) }, () => random.pick(WORDS))
  return lines.join(eol) + (random.chance(0.7) ? eol : '')
}

function changed(random: Random, text: string): string {
  const lines = text.split('\n')
  for (let i = random.below(4); i >= 0; i--) {
    lines.splice(random.below(lines.length + 1), random.below(3), ...(random.chance(0.7) ? [random.pick(WORDS)] : []))
  }
  return lines.join('\n')
}

function write(root: string, name: string, text: string, mode: number): void {
  mkdirSync(dirname(join(root, name)), { recursive: true })
  writeFileSync(join(root, name), text)
  chmodSync(join(root, name), mode)
}

/** Every file with its content, and whether it may be run. */
function treeOf(root: string): Record<string, [string, boolean]> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter((name) => !name.startsWith('.git') && lstatSync(join(root, name)).isFile())
  return Object.fromEntries(
    files.map((name) => [
      name,
      [readFileSync(join(root, name), 'latin1'), (lstatSync(join(root, name)).mode & 0o100) !== 0],
    ]),
  )
}

function git(root: string, ...args: string[]): string {
  const done = spawnSync('git', [
    '-C',
    root,
    '-c',
    'core.autocrlf=false',
    '-c',
    'user.name=x',
    '-c',
    'user.email=x@x',
    ...args,
  ])
  expect(done.status, done.stderr.toString()).toBe(0)
  return done.stdout.toString()
}

/** Changes some files of a repository in every way that git tells. */
function mutate(random: Random, root: string): void {
  for (const name of NAMES) {
    const path = join(root, name)
    const text = lstatSync(path, { throwIfNoEntry: false }) && readFileSync(path, 'utf8')
    const kind = random.below(6)
    if (text === undefined) {
      if (kind < 3) write(root, name, contentOf(random), random.pick([0o644, 0o755]))
    } else if (kind === 0) rmSync(path)
    else if (kind === 1) renameSync(path, `${path}.moved`)
    else if (kind === 2) chmodSync(path, random.pick([0o644, 0o755]))
    else if (kind < 5) writeFileSync(path, changed(random, text))
  }
}

async function applied(patch: string): Promise<KikiError | undefined> {
  try {
    await runTool(applyPatch, folder.context(), { patch })
    return undefined
  } catch (error) {
    if (error instanceof KikiError) return error
    throw error
  }
}

it.skipIf(!HAS_GIT)(
  'FI-10 FI-14 what git diff says of 60 random changes is applied to the byte and mode, and undone so',
  async () => {
    let count = 0
    const random = createRandom(10)
    for (let round = 0; round < 60; round++) {
      const repo = join(folder.base, `repo-${round}`)
      mkdirSync(repo)
      git(repo, 'init', '-q')
      for (const name of NAMES)
        if (random.chance(0.8)) write(repo, name, contentOf(random), random.pick([0o644, 0o755]))
      git(repo, 'add', '-A')
      git(repo, 'commit', '-qm', 'x', '--allow-empty')
      rmSync(folder.root, { recursive: true })
      cpSync(repo, folder.root, { recursive: true, filter: (path) => !path.endsWith('.git') })
      const before = treeOf(folder.root)
      mutate(random, repo)
      git(repo, 'add', '-A')
      const options = random.pick([[], ['-M'], ['-C', '--find-copies-harder'], ['--no-renames', '-U1'], ['-U0']])
      const patch = git(repo, 'diff', '--cached', '--text', ...options)
      if (patch === '') continue
      const refused = await applied(patch)
      if (refused !== undefined) {
        // Without context nothing proves the place of lines that are only added.
        expect([options, refused.message]).toEqual([
          ['-U0'],
          expect.stringContaining('no line that would tell its place'),
        ])
        expect(treeOf(folder.root)).toEqual(before)
        continue
      }
      count++
      expect(treeOf(folder.root), `${round}\n${patch}`).toEqual(treeOf(repo))
      await runTool(undo, folder.context(), {})
      expect(treeOf(folder.root), `${round} undone\n${patch}`).toEqual(before)
      rmSync(repo, { recursive: true })
    }
    expect(count).toBeGreaterThan(40)
  },
  120_000,
)

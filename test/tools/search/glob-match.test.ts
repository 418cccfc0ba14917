import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compileGlob } from '../../../src/tools/search/glob-match.js'

it('SR-03 no pattern takes long: stars that would make a regular expression backtrack', () => {
  const pattern = `${'*a'.repeat(60)}b`
  const name = 'a'.repeat(255)
  const glob = compileGlob(`${'**/'.repeat(60)}${pattern}`)
  const deep = Array.from({ length: 60 }, () => name).join('/')
  const before = performance.now()
  expect(glob.matches(deep, false)).toBe(false)
  expect(performance.now() - before).toBeLessThan(5000)
})

it('SR-02 agrees with ripgrep’s own globs wherever both mean the same', () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'kiki-glob-'))
  const files = ['a', 'b', 'ab', 'a/a', 'a/b', 'a/ab', 'ab/a', 'a/b/a', 'b/a/ab', 'ab/b/ba/a'].map(
    (name) => `${name}.x`,
  )
  for (const file of files) {
    mkdirSync(path.dirname(path.join(dir, 'r', file)), { recursive: true })
    writeFileSync(path.join(dir, 'r', file), '')
  }
  const part = fc.constantFrom('a', 'b', 'ab', '*', '?', 'a*', '*b', '[ab]', '[!a]', '{a,b}', '**')
  const last = fc.constantFrom('a.x', '*.x', '?.x', '{a,ab}.x', '*b.?', '[a-b].x')
  try {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 3 }), last, (folders, name) => {
        const pattern = [...folders, name].join('/')
        const args = ['--no-config', '--files', '--glob', pattern]
        let listed = ''
        try {
          listed = execFileSync(rgPath, args, {
            cwd: path.join(dir, 'r'),
            stdio: ['ignore', 'pipe', 'ignore'],
          }).toString()
        } catch (error) {
          // Exit code 1: nothing matches.
          if (!(error instanceof Error) || !('status' in error) || error.status !== 1) throw error
        }
        const glob = compileGlob(pattern)
        const prefix = glob.base === '' ? '' : `${glob.base}/`
        const ours = files.filter((f) => f.startsWith(prefix) && glob.matches(f.slice(prefix.length), false))
        expect(ours.toSorted(), pattern).toEqual(listed.trim().split('\n').filter(Boolean).toSorted())
      }),
      { numRuns: 150 },
    )
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

it('SR-02 what ripgrep may skip never matches', () => {
  const cases = [
    ['**/*.ts', 'a/b.ts'],
    ['[ab]é?.ts', 'aéx.ts'],
    ['app/[slug]', 'app/[slug]'],
    ['{a,b}/**', 'a/x'],
  ] as const
  for (const [pattern, file] of cases) {
    const glob = compileGlob(pattern)
    const rest = glob.base === '' ? file : file.slice(glob.base.length + 1)
    expect(glob.matches(rest, false), pattern).toBe(true)
    const name = path.basename(file)
    const passes = glob.nameGlobs.some((one) => compileGlob(one).matches(name, true))
    expect(glob.nameGlobs.length === 0 || passes, pattern).toBe(true)
  }
})

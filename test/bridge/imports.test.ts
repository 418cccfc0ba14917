import { readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')

/** What a source file loads before its first line runs: its static imports of values. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/^(?:import|export) (?!type )[^;]*? from '([^']+)'/gm)].map((match) => match[1] ?? '')
}

it('until it has to start a host the bridge loads a few small files and of Node.js hardly more than node:net', () => {
  const own = new Set<string>()
  const outside = new Set<string>()
  const visit = (file: string) => {
    if (own.has(file)) return
    own.add(file)
    for (const name of importsOf(file)) {
      if (name.startsWith('.')) visit(resolve(dirname(file), name.replace(/\.js$/, '.ts')))
      else outside.add(name)
    }
  }
  visit(resolve(src, 'bridge/bridge.ts'))
  expect([...outside].sort()).toEqual(['node:crypto', 'node:fs', 'node:net', 'node:os', 'node:path'])
  const folders = new Set([...own].map((file) => relative(src, file)).map((file) => file.split('/')[0]))
  expect([...folders].sort()).toEqual(['bridge', 'config', 'lib'])
  expect([...own].map((file) => relative(src, file)).filter((file) => !file.startsWith('bridge/'))).toEqual(
    expect.arrayContaining(['lib/errors.ts', 'lib/ids.ts', 'config/home.ts']),
  )
  const bytes = [...own].reduce((sum, file) => sum + readFileSync(file).length, 0)
  expect(bytes).toBeLessThan(64 * 1024)
  // The entry itself loads nothing before it has picked the bridge.
  expect(importsOf(resolve(src, 'main.ts'))).toEqual([])
})

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** Each folder imports only from those above it (design: layout). Files directly in `src/` stand on floors of their own. */
const FLOORS = [
  'lib',
  'config',
  'store',
  'events',
  'audit',
  'processes',
  'sandbox',
  'workspace',
  'policy',
  'grants',
  'sessions',
  'operations',
  'approvals',
  'lifecycle',
  'codemode',
  'agent',
  'tools',
  'upstream',
  'exposure',
  'calls',
  'control',
  'discovery',
  'http',
  'oauth',
  'mcp',
  'owner',
  'parts.ts',
  'host.ts',
  'bridge',
  'cli',
  'main.ts',
]

/** The bridge must start fast: it may load nothing else of Kiki's. */
const BRIDGE_MAY = ['bridge', 'lib', 'config/home.ts', 'config/home-folder.ts']

interface Import {
  from: string
  to: string
}

function imports(): Import[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((from) => {
      const text = readFileSync(join(SRC, from), 'utf8')
      const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
      return [...found].map(([, path = '']) => ({
        from,
        to: relative(SRC, resolve(SRC, dirname(from), path)).replace(/\.js$/, '.ts'),
      }))
    })
}

function floorOf(file: string): number {
  return FLOORS.indexOf(file.split('/')[0] ?? '')
}

it('finds the imports', () => {
  expect(imports().length).toBeGreaterThan(100)
})

it('every folder of src has a floor', () => {
  expect(readdirSync(SRC).filter((name) => !FLOORS.includes(name))).toEqual([])
})

it('a folder imports only from folders above it', () => {
  const wrong = imports().filter(({ from, to }) => floorOf(to) > floorOf(from))
  expect(wrong).toEqual([])
})

it('the bridge imports only lib, the paths of the home and what makes its folder', () => {
  const wrong = imports().filter(
    ({ from, to }) => from.startsWith('bridge/') && !BRIDGE_MAY.some((may) => to === may || to.startsWith(`${may}/`)),
  )
  expect(wrong).toEqual([])
})

it('the environment is read only in config, and the process ended only in main.ts and the launcher, a program of its own', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
  const uses = (pattern: RegExp) => files.filter((file) => pattern.test(readFileSync(join(SRC, file), 'utf8')))
  expect(uses(/process\.env\b/).filter((file) => !file.startsWith('config/'))).toEqual([])
  expect(uses(/process\.exit\(/).filter((file) => file !== 'main.ts' && file !== 'processes/launcher.ts')).toEqual([])
})

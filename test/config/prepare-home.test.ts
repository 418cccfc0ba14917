import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { prepareHome, readSecrets } from '../../src/config/prepare-home.js'
import { KikiError } from '../../src/lib/errors.js'

const root = process.getuid?.() === 0

let base: string
let dir: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'kiki-home-'))
  dir = join(base, 'über uns', 'Kiki home 家')
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

function refusal(): KikiError {
  try {
    prepareHome(dir)
  } catch (error) {
    if (error instanceof KikiError) return error
    throw error
  }
  throw new Error('the home was accepted')
}

/** Mode of everything below a folder that is no link, by its path. */
function modes(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => !e.isSymbolicLink())
  return Object.fromEntries(
    entries.map((e) => [e.name, (lstatSync(join(e.parentPath, e.name)).mode & 0o777).toString(8)]),
  )
}

it('GU-60 a fresh home and all in it are the owner’s alone, whatever the umask', () => {
  const before = process.umask(0)
  try {
    readSecrets(prepareHome(dir))
  } finally {
    process.umask(before)
  }
  expect(lstatSync(dir).mode & 0o777).toBe(0o700)
  const found = modes(dir)
  expect(Object.keys(found).sort()).toEqual(
    ['changes', 'credential.key', 'home-id', 'keys', 'logs', 'media', 'output', 'owner.token', 'run'].sort(),
  )
  for (const [name, mode] of Object.entries(found))
    expect([name, mode]).toEqual([name, /\.|-/.test(name) ? '600' : '700'])
})

it('GU-60 modes that were loosened are mended; what a link points to is not touched', () => {
  readSecrets(prepareHome(dir))
  const outside = join(base, 'outside')
  writeFileSync(outside, '', { mode: 0o644 })
  symlinkSync(outside, join(dir, 'link'))
  for (const name of ['config.toml', 'mcp.json', 'media/picture', 'keys/more']) writeFileSync(join(dir, name), '')
  for (const entry of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    if (entry !== 'link') chmodSync(join(dir, entry), 0o777)
  }
  chmodSync(dir, 0o755)
  prepareHome(dir)
  expect(lstatSync(dir).mode & 0o777).toBe(0o700)
  for (const mode of Object.values(modes(dir))) expect(['600', '700']).toContain(mode)
  expect(lstatSync(outside).mode & 0o777).toBe(0o644)
})

it('secrets are made once and stay; each home has its own', () => {
  const first = readSecrets(prepareHome(dir))
  expect(readSecrets(prepareHome(dir))).toEqual(first)
  expect(first.ownerToken).toMatch(/^kiki_owner_[\w-]{43}$/)
  expect(first.credentialKey).toHaveLength(32)
  const other = readSecrets(prepareHome(join(base, 'other')))
  for (const name of ['homeId', 'ownerToken', 'credentialKey'] as const) expect(other[name]).not.toEqual(first[name])
})

it('GU-43 a secret is never there half written: killed at any system call, the next start has whole ones', () => {
  if (spawnSync('strace', ['-V']).status !== 0) return console.warn('strace is missing: not killed at every call')
  const module = new URL('../../dist/config/prepare-home.js', import.meta.url).href
  const script = `const m = await import(${JSON.stringify(module)}); m.readSecrets(m.prepareHome(${JSON.stringify(dir)}))`
  for (const call of ['write', 'fsync', 'rename'])
    for (let nth = 1; nth <= 3; nth++) {
      rmSync(dir, { recursive: true, force: true })
      const paths = ['owner.token', 'keys/home-id', 'keys/credential.key'].map((name) => join(dir, name))
      const inject = `inject=${call}:signal=SIGKILL:when=${nth}`
      const trace = ['-f', '-o', '/dev/null', '-e', `trace=${call}`, '-e', inject]
      const { signal } = spawnSync('strace', [...trace, process.execPath, '--input-type=module', '-e', script])
      if (call === 'rename') expect(signal).toBe('SIGKILL')
      for (const path of paths) {
        if (lstatSync(path, { throwIfNoEntry: false })) expect(readFileSync(path, 'utf8').trim()).not.toBe('')
      }
      expect(readSecrets(prepareHome(dir)).credentialKey).toHaveLength(32)
    }
})

it('an empty secret is an error that says what to do', () => {
  const paths = prepareHome(dir)
  writeFileSync(paths.ownerToken, '')
  expect(() => readSecrets(paths)).toThrow('is empty')
})

it('a file where the home, a folder above it or a folder in it should be', () => {
  mkdirSync(join(base, 'über uns'))
  writeFileSync(dir, 'a file')
  expect(refusal()).toMatchObject({ code: 'conflict', hint: expect.stringContaining('--home') })
  dir = join(dir, 'below')
  expect(refusal().code).toBe('conflict')
  dir = join(base, 'home')
  mkdirSync(dir)
  writeFileSync(join(dir, 'logs'), '')
  expect(refusal().message).toContain(join(dir, 'logs'))
})

it.each(['config.toml', 'mcp.json', 'kiki.db', 'host.lock', 'host.json', 'stopped', 'owner.token'])(
  'a folder or a pipe where %s should be is named, not waited for',
  (name) => {
    mkdirSync(join(dir, name), { recursive: true })
    expect(refusal()).toMatchObject({ code: 'conflict', message: expect.stringContaining(join(dir, name)) })
    rmSync(join(dir, name), { recursive: true })
    execFileSync('mkfifo', [join(dir, name)])
    expect(refusal().message).toContain('not a file')
  },
)

it.skipIf(!root)('a home of another user, and one on a disk that cannot be written', () => {
  mkdirSync(dir, { recursive: true })
  execFileSync('chown', ['nobody', dir])
  expect(refusal()).toMatchObject({ code: 'permission_denied', message: expect.stringContaining('another user') })
  execFileSync('chown', ['root', dir])
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,mode=700', 'tmpfs', dir])
  try {
    expect(refusal()).toMatchObject({ code: 'permission_denied', message: expect.stringContaining('read-only') })
  } finally {
    execFileSync('umount', [dir])
  }
})

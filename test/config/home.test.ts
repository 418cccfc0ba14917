import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defaultHome, homeCommand, homePaths, hostEnvironment, runtimeDir, socketPath } from '../../src/config/home.js'
import { tempDir } from '../bridge/build.js'

let dir: string
beforeEach(() => {
  dir = tempDir('kh-')
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(dir, { recursive: true, force: true })
})

const longHome = () => join(dir, 'x'.repeat(100))

describe('homePaths', () => {
  it('everything stands in the home, whose path is made absolute', () => {
    const paths = homePaths(dir)
    expect(paths).toMatchObject({ dir, database: join(dir, 'kiki.db'), socket: join(dir, 'kiki.sock') })
    for (const path of Object.values(paths)) expect(path.startsWith(dir)).toBe(true)
    expect(homePaths('relative').dir).toBe(join(process.cwd(), 'relative'))
  })

  it('CL-10 without --home it is $KIKI_HOME, else ~/.kiki', () => {
    vi.stubEnv('KIKI_HOME', dir)
    expect(defaultHome()).toBe(dir)
    vi.stubEnv('KIKI_HOME', '')
    expect(defaultHome()).toBe(join(homedir(), '.kiki'))
  })
})

describe('socketPath', () => {
  it('a long home has its socket in the runtime folder, under a name of its real path, made or not', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', dir)
    const before = socketPath(longHome())
    expect(before).toMatch(new RegExp(`^${dir}/kiki-[0-9a-f]{16}\\.sock$`))
    mkdirSync(longHome())
    symlinkSync(longHome(), join(dir, 'y'.repeat(100)))
    expect(socketPath(longHome())).toBe(before)
    expect(socketPath(join(dir, 'y'.repeat(100)))).toBe(before)
    expect(socketPath(join(dir, 'z'.repeat(100)))).not.toBe(before)
  })

  it('no path that fits is an error that says so', () => {
    const deep = join(dir, 'd'.repeat(90))
    mkdirSync(deep)
    chmodSync(deep, 0o700)
    vi.stubEnv('XDG_RUNTIME_DIR', deep)
    expect(() => socketPath(longHome())).toThrow('No socket path')
  })
})

describe('runtimeDir', () => {
  it('GU-60 a runtime folder that others may enter is not used; ours is made 0700', () => {
    vi.stubEnv('TMPDIR', dir)
    vi.stubEnv('XDG_RUNTIME_DIR', dir)
    chmodSync(dir, 0o755)
    const own = runtimeDir()
    expect(own).toBe(join(tmpdir(), `kiki-${process.getuid?.()}`))
    expect(lstatSync(own).mode & 0o777).toBe(0o700)
    expect(runtimeDir()).toBe(own)
  })

  it('GU-60 a link, or a folder open to others, under that name is refused', () => {
    vi.stubEnv('TMPDIR', dir)
    vi.stubEnv('XDG_RUNTIME_DIR', '')
    const own = join(dir, `kiki-${process.getuid?.()}`)
    mkdirSync(join(dir, 'theirs'))
    symlinkSync(join(dir, 'theirs'), own)
    expect(() => runtimeDir()).toThrow('is a link')
    rmSync(own)
    mkdirSync(own)
    chmodSync(own, 0o777)
    expect(() => runtimeDir()).toThrow('open to other users')
    expect(existsSync(own)).toBe(true)
  })
})

it('GU-09 the environment for a background host holds no more than it needs', () => {
  vi.stubEnv('LC_TIME', 'C')
  vi.stubEnv('XDG_DATA_HOME', '/d')
  vi.stubEnv('KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS', '0')
  vi.stubEnv('OPENAI_API_KEY', 'secret')
  vi.stubEnv('NODE_OPTIONS', '--trace-warnings')
  vi.stubEnv('LD_PRELOAD', '/evil.so')
  const env = hostEnvironment()
  expect(env).toMatchObject({
    LC_TIME: 'C',
    XDG_DATA_HOME: '/d',
    KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS: '0',
    PATH: process.env.PATH,
  })
  expect(Object.keys(env).filter((name) => /OPENAI|NODE|LD_/.test(name))).toEqual([])
})

describe('homeCommand', () => {
  it('CL-10 names the home unless a command finds it by itself, as one word of a shell', () => {
    vi.stubEnv('KIKI_HOME', dir)
    expect(homeCommand(dir, 'start')).toBe('`kiki start`')
    expect(homeCommand('/other', 'stop')).toBe('`kiki stop --home /other`')
    expect(homeCommand('/an other', 'status')).toBe("`kiki status --home '/an other'`")
    vi.stubEnv('KIKI_HOME', '')
    expect(homeCommand(join(homedir(), '.kiki'), 'start')).toBe('`kiki start`')
  })
})

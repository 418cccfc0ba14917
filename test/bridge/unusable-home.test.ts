import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fillUp } from '../helpers/disk.js'
import { MAIN } from '../helpers/host.js'

/** Only the superuser may mount, and act as somebody else. */
const root = process.platform === 'linux' && process.getuid?.() === 0
const NOBODY = 65_534

let base: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-unusable-')))
  chmodSync(base, 0o755)
})
afterEach(() => {
  if (existsSync(join(base, 'disk'))) execFileSync('umount', ['-l', join(base, 'disk')])
  rmSync(base, { recursive: true })
})

/** The last words of a bridge, or of `kiki start --background`, whose home cannot be made. */
function lastWords(home: string, args: string[], user?: number): Promise<{ code: number | null; err: string }> {
  const child = spawn(process.execPath, [MAIN, ...args, '--home', home], {
    stdio: ['pipe', 'ignore', 'pipe'],
    cwd: '/',
    ...(user === undefined ? {} : { uid: user, gid: user }),
  })
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, err })))
}

const BRIDGE = ['mcp', '--client', 'client_x', '--tools']
const START = ['start', '--background']

function disk(...options: string[]): string {
  const dir = join(base, 'disk')
  mkdirSync(dir)
  execFileSync('mount', ['-t', 'tmpfs', ...options, 'tmpfs', dir])
  return dir
}

it.each([BRIDGE, START])('GU-09 CL-10 a home below a file is named, with what to do (%s)', async (...args) => {
  writeFileSync(join(base, 'file'), '')
  const { code, err } = await lastWords(join(base, 'file', 'home'), args)
  expect(code).toBe(1)
  expect(err).toContain(`${join(base, 'file', 'home')} cannot be a folder: a file stands there or above it.`)
  expect(err).toContain('choose another --home')
})

it.runIf(root).each([BRIDGE, START])(
  'GU-09 CL-10 a home that this user may not make is named, with what to do (%s)',
  async (...args) => {
    const { code, err } = await lastWords(join(base, 'home'), args, NOBODY)
    expect(code).toBe(1)
    expect(err).toMatch(/home cannot be written \(EACCES.*Choose a --home on a disk that this user can write to\./s)
  },
)

it.runIf(root).each([BRIDGE, START])(
  'GU-09 CL-10 a home on a read-only disk is named, with what to do (%s)',
  async (...args) => {
    const { code, err } = await lastWords(join(disk('-o', 'ro'), 'home'), args)
    expect(code).toBe(1)
    expect(err).toMatch(/home cannot be written \(EROFS.*Choose a --home on a disk that this user can write to\./s)
  },
)

it.runIf(root).each([BRIDGE, START])(
  'GU-09 CL-10 a home on a full disk is named, with what to do (%s)',
  async (...args) => {
    // Neither a byte nor an inode is left.
    const dir = disk('-o', 'size=64k,nr_inodes=3')
    fillUp(join(dir, 'filler'))
    mkdirSync(join(dir, 'last'))
    const { code, err } = await lastWords(join(dir, 'home'), args)
    expect(code).toBe(1)
    expect(err).toMatch(
      /home cannot be written: its disk is full.*Free some space there, or choose a --home on another disk\./s,
    )
  },
)

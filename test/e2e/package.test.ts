import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { copySources, plainEnvironment, ROOT } from '../helpers/source-copy.js'

/** better-sqlite3 is compiled where no ready binary can be had: a minute or two, more on a busy machine. */
const INSTALL_MS = 600_000

let base: string
let archive: string
let packed: { path: string; mode: number }[]

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-package-')))
  const source = copySources(join(base, 'source'))
  const said = run('npm', ['pack', '--json', '--pack-destination', base], source)
  const [{ filename, files }] = JSON.parse(said.slice(said.indexOf('[\n')))
  archive = join(base, filename)
  packed = files
}, 120_000)
afterAll(() => rmSync(base, { recursive: true, force: true }))

it('PK-03 the package holds the built program and what it needs to read, and nothing of the workshop', () => {
  const paths = packed.map(({ path }) => path)
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/main.js',
      'dist/host.js',
      'dist/host.d.ts',
      'dist/processes/launcher.js',
      'dist/web/index.html',
      'migrations/0001-initial.sql',
      'config.example.toml',
      'package.json',
      'README.md',
      'SECURITY.md',
      'CHANGELOG.md',
      'LICENSE',
    ]),
  )
  const places = new Set(paths.map((path) => path.split('/')[0]))
  expect([...places].sort()).toEqual(
    'CHANGELOG.md LICENSE README.md SECURITY.md config.example.toml dist migrations package.json'.split(' '),
  )
  const sources = paths.filter((path) => /\.tsx?$/.test(path) && !path.endsWith('.d.ts'))
  expect(sources).toEqual([])
  expect(paths.filter((path) => /\.(map|test\.js|tsbuildinfo)$/.test(path))).toEqual([])
})

it(
  'PK-03 it installs globally under a clean prefix and runs: version, start, status, stop',
  () => {
    const prefix = join(base, 'prefix')
    run(
      'npm',
      ['install', '--global', '--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund', archive],
      base,
    )
    const installed = join(prefix, 'lib', 'node_modules', 'kiki')
    for (const name of ['typescript', 'vite', 'vitest', 'react-dom', '@modelcontextprotocol/sdk']) {
      expect(existsSync(join(installed, 'node_modules', name)), name).toBe(false)
    }
    const home = join(base, 'home')
    const kiki = (...args: string[]) => run(join(prefix, 'bin', 'kiki'), args, base)
    expect(kiki('--version').trim()).toBe(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    try {
      const started = JSON.parse(kiki('start', '--background', '--home', home, '--json'))
      const status = JSON.parse(kiki('status', '--home', home, '--json'))
      expect(status).toMatchObject({ running: true, pid: started.pid, home })
      const made = JSON.parse(kiki('connections', 'add', '--name', 'A client', '--home', home, '--json'))
      const config = JSON.parse(kiki('connect', 'cursor', '--client', made.id, '--home', home, '--json'))
      expect(config.config.mcpServers.kiki.args[0]).toBe(join(installed, 'dist', 'main.js'))
    } finally {
      expect(JSON.parse(kiki('stop', '--home', home, '--json'))).toMatchObject({ stopped: true })
    }
    expect(JSON.parse(kiki('status', '--home', home, '--json'))).toMatchObject({ running: false })
  },
  INSTALL_MS,
)

function run(program: string, args: string[], cwd: string): string {
  const env = plainEnvironment()
  return execFileSync(program, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

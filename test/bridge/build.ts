import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** The compiled program in a folder of its own. */
export interface Build {
  dir: string
  main: string
  remove(): void
}

/** Stands in for the command line: `start` records how it was started and is the host from then on. */
const START_PROGRAM = `
import { existsSync, writeFileSync } from 'node:fs'
import { startFixtureHost } from './fixture-host.js'
export async function runProgram(argv) {
  const home = argv[argv.indexOf('--home') + 1]
  writeFileSync(home + '/started.json', JSON.stringify({ argv, env: process.env, pid: process.pid, cwd: process.cwd() }))
  if (existsSync(home + '/broken')) {
    console.error('kiki: starting\\nkiki: The database is corrupt.')
    return 1
  }
  await startFixtureHost({ home, effects: home + '/effects' })
  return new Promise(() => {})
}
`

const root = resolve(import.meta.dirname, '../..')
const tsc = join(root, 'node_modules/.bin/tsc')

/** Compiles `src/` (and, on request, the fixture host, which then answers to `kiki start`) into a temporary folder. */
export function build(withHost = false): Build {
  const dir = tempDir('kiki-build-')
  execFileSync(tsc, ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(dir, 'dist'), '--declaration', 'false'])
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
  symlinkSync(realpathSync(join(root, 'node_modules')), join(dir, 'node_modules'))
  if (withHost) {
    const options = '--module nodenext --target es2023 --types node --strict --skipLibCheck --ignoreConfig'.split(' ')
    execFileSync(tsc, [join(import.meta.dirname, 'fixture-host.ts'), '--outDir', join(dir, 'dist/cli'), ...options], {
      cwd: root,
    })
    writeFileSync(join(dir, 'dist/cli/program.js'), START_PROGRAM)
  }
  return { dir, main: join(dir, 'dist/main.js'), remove: () => rmSync(dir, { recursive: true, force: true }) }
}

export function tempDir(prefix: string): string {
  return realpathSync(mkdtempSync(join(tmpdir(), prefix)))
}

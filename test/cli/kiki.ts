import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

export interface Ran {
  code: number | null
  out: string
  err: string
}

/** The compiled program beside what the package holds, and homes to use it on. */
export function buildKiki() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-cli-')))
  const tsc = join(root, 'node_modules/.bin/tsc')
  execFileSync(tsc, ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(dir, 'dist'), '--declaration', 'false'])
  for (const name of ['node_modules', 'migrations', 'package.json']) {
    symlinkSync(realpathSync(join(root, name)), join(dir, name))
  }
  const main = join(dir, 'dist/main.js')

  function launch(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { KIKI_HOME: _, ...rest } = process.env
    return spawn(process.execPath, [main, ...args], { env: { ...rest, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  return {
    dir,
    main,
    launch,
    run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> {
      const child = launch(args, env)
      const ran: Ran = { code: null, out: '', err: '' }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        ran.out += text
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        ran.err += text
      })
      return new Promise((done, fail) => {
        child.once('error', fail)
        child.once('close', (code) => done({ ...ran, code }))
      })
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

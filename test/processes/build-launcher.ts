import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Compiles `src/processes/` as the package's build does, for tests that run from TypeScript sources. */
export function buildLauncher(): { launcherPath: string; processesPath: string; remove(): void } {
  const dir = mkdtempSync(path.join(tmpdir(), 'kiki-launcher-'))
  writeFileSync(path.join(dir, 'package.json'), '{"type":"module"}')
  const root = path.resolve(import.meta.dirname, '../..')
  symlinkSync(path.join(root, 'node_modules'), path.join(dir, 'node_modules'))
  const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const flags =
    '--ignoreConfig --module nodenext --target es2023 --lib es2023 --types node --strict --skipLibCheck'.split(' ')
  const sources = ['src/processes/launcher.ts', 'src/processes/start-command.ts', 'src/processes/processes.ts']
  execFileSync(process.execPath, [tsc, ...flags, '--outDir', dir, '--rootDir', 'src', ...sources], { cwd: root })
  return {
    launcherPath: path.join(dir, 'processes/launcher.js'),
    processesPath: path.join(dir, 'processes/processes.js'),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

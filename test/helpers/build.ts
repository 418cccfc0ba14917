import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Tests start real hosts, bridges and launchers: what they run is built first, from the sources that are there now. */
export function setup(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const run = (file: string, args: string[]) =>
    execFileSync(process.execPath, [`${root}node_modules/${file}`, ...args], { cwd: root, stdio: 'inherit' })
  run('typescript/bin/tsc', ['-p', 'tsconfig.build.json'])
  run('vite/bin/vite.js', ['build', 'web', '--logLevel', 'warn'])
}

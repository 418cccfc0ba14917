import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Tests start real hosts, bridges and launchers: what they run is built first, from the sources that are there now. */
export function setup(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const run = (...args: string[]) => execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json')
  run('scripts/bundle-bridge.mjs')
  run('node_modules/vite/bin/vite.js', 'build', 'web', '--logLevel', 'warn')
}

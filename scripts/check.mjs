// Everything that can be said of the code without running it: format, lint, types, floors.
import { spawnSync } from 'node:child_process'

const steps = [
  ['biome', ['check', '--error-on-warnings']],
  ['tsc', ['-p', 'tsconfig.json']],
  ['tsc', ['-p', 'web/tsconfig.json']],
  ['vitest', ['run', 'test/import-floors.test.ts', '--reporter=dot']],
]

for (const [program, args] of steps) {
  console.log(`$ ${program} ${args.join(' ')}`)
  const { status } = spawnSync('npx', ['--no-install', program, ...args], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
console.log('check: ok')

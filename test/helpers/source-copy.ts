import { cpSync, realpathSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The project as a fresh clone after `npm ci` has it: nothing built yet. Returns `to`. */
export function copySources(to: string): string {
  const left = new Set(['node_modules', 'dist', '.git', 'coverage'])
  cpSync(ROOT, to, { recursive: true, filter: (path) => !left.has(basename(path)) })
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(to, 'node_modules'))
  return to
}

/** The environment of a person's shell: without what the surrounding `npm test` tells its own children. */
export function plainEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm|KIKI|VITEST)_|^VITEST$/i.test(name)))
}

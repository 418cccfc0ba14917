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

/**
 * The environment of a person's shell: without what the surrounding `npm test` tells its own children. Where packages come
 * from and what they are compiled against (`npm_config_registry`, `npm_config_nodedir`, …) stays.
 */
export function plainEnvironment(): Record<string, string | undefined> {
  const told = /^npm_(?!config_)|^npm_config_(local|global)_?prefix$|^npm_config_prefix$|^KIKI_|^VITEST/i
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !told.test(name)))
}

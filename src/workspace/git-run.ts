import { KikiError } from '../lib/errors.js'
import type { Processes } from '../processes/processes.js'

/** What runs Kiki's own git. */
export interface GitDeps {
  processes: Processes
  env: Readonly<Record<string, string | undefined>>
}

/** Milliseconds for one call: a checkout of a large repository takes long. */
const GIT_MS = 300_000
const MAX_OUTPUT = 16 * 1024 * 1024

/** Nothing that a repository or the owner has set up may run by Kiki's own git: no hook, no monitor, no fetch (SE-10). */
const QUIET = [
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'gc.auto=0',
  '-c',
  'maintenance.auto=false',
]

export interface GitResult {
  exitCode: number | null
  out: string
  err: string
}

/**
 * Runs git in a folder.
 * @param filters names of filters that are turned off (see {@link filtersOf}).
 * @throws KikiError `not_found` where there is no git, `timeout`.
 */
export async function git(
  deps: GitDeps,
  cwd: string,
  args: readonly string[],
  filters: readonly string[] = [],
): Promise<GitResult> {
  const chunks: Buffer[] = []
  let size = 0
  const off = filters.flatMap((name) =>
    ['smudge=', 'clean=', 'process=', 'required=false'].flatMap((setting) => ['-c', `filter.${name}.${setting}`]),
  )
  const { PATH = '', HOME = '' } = deps.env
  const result = await deps.processes.run({
    argv: ['git', ...QUIET, ...off, ...args],
    cwd,
    env: { PATH, HOME, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_ALLOW_PROTOCOL: 'none', GIT_OPTIONAL_LOCKS: '0' },
    signal: AbortSignal.timeout(GIT_MS),
    onStdout(chunk) {
      size += chunk.length
      if (size <= MAX_OUTPUT) chunks.push(chunk)
      return true
    },
  })
  return { exitCode: result.exitCode, out: Buffer.concat(chunks).toString('utf8'), err: result.stderr.trim() }
}

/** As {@link git}, of a call that must work. @throws KikiError `conflict` with git's own words. */
export async function mustGit(
  deps: GitDeps,
  cwd: string,
  args: readonly string[],
  filters: readonly string[] = [],
): Promise<string> {
  const { exitCode, out, err } = await git(deps, cwd, args, filters)
  if (exitCode === 0) return out
  throw new KikiError('conflict', `git ${args[0]} failed: ${err.split('\n').slice(-3).join(' ')}`, {
    hint: 'Mend that in the repository, or work without a worktree.',
  })
}

/** Names of the filters that some configuration sets up: programs that a checkout would run (FC-P03). */
export async function filtersOf(deps: GitDeps, cwd: string): Promise<string[]> {
  const { out } = await git(deps, cwd, [
    'config',
    '-z',
    '--name-only',
    '--get-regexp',
    '^filter\\..*\\.(smudge|clean|process)$',
  ])
  const names = out.split('\0').map((key) => /^filter\.(.*)\.[a-z]+$/s.exec(key)?.[1])
  return [...new Set(names.filter((name) => name !== undefined))]
}

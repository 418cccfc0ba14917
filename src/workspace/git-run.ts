import { KikiError } from '../lib/errors.js'
import type { Processes } from '../processes/processes.js'

/** What Kiki's own calls of git need. */
export interface GitDeps {
  processes: Pick<Processes, 'run'>
  /** Of the host; git gets only where programs are and whose home it is. */
  env: Readonly<Record<string, string | undefined>>
}

/** Which repository; without `gitDir` the one that git finds from the folder. */
export interface GitPlace {
  cwd: string
  gitDir?: string
  workTree?: string
  /** In place of the repository's own. */
  index?: string
  /** Filters of the repository's configuration, which must not run. */
  filters?: readonly string[]
}

export interface GitAnswer {
  /** Null where a signal ended it. */
  code: number | null
  stdout: string
  /** Of what went wrong, one line. */
  problem: string
}

/** Longest answer, in bytes: a list of the changes of a large worktree. */
const MAX_OUTPUT = 16 * 1024 * 1024
/** A checkout of a very large repository on a slow disk. */
const TIMEOUT_MS = 300_000

/**
 * What a repository's configuration could make git run, turned off (SE-10): hooks, the file system monitor, programs that speak to
 * other machines. Git takes these settings before any file. Filters are turned off by their names, see {@link configuredFilters}.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'false',
  'core.attributesFile': '/dev/null',
  'core.alternateRefsCommand': '',
  'core.sshCommand': 'false',
  'core.pager': 'cat',
  'core.editor': 'false',
  'core.checkStat': 'default',
  'core.trustctime': 'true',
  'core.quotePath': 'false',
  'credential.helper': '',
  'submodule.recurse': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
}

/**
 * Runs git so that nothing of the repository or of the owner's settings runs with it: no hook, monitor, filter, pager, prompt or
 * transport, and no configuration but the repository's.
 * @throws KikiError `not_found` where there is no git, `timeout` after 5 minutes, `too_large` past 16 MiB of answer.
 */
export async function runGit(deps: GitDeps, place: GitPlace, args: readonly string[]): Promise<GitAnswer> {
  const chunks: Buffer[] = []
  let size = 0
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const ended = await deps.processes.run({
      argv: ['git', '--no-pager', ...args],
      cwd: place.cwd,
      env: environmentOf(deps.env, place),
      signal,
      onStdout(chunk) {
        size += chunk.length
        if (size > MAX_OUTPUT) return false
        chunks.push(chunk)
        return undefined
      },
    })
    if (ended.stopped) throw new KikiError('too_large', `git ${args[0]} answers with more than ${MAX_OUTPUT} bytes.`)
    return { code: ended.exitCode, stdout: Buffer.concat(chunks).toString(), problem: oneLine(ended.stderr) }
  } catch (error) {
    if (signal.aborted) throw new KikiError('timeout', `git ${args[0]} did not end within ${TIMEOUT_MS / 1000} s.`)
    if (!(error instanceof KikiError) || error.code !== 'not_found') throw error
    throw new KikiError('not_found', 'There is no git program that Kiki could run, or its folder is gone.', {
      hint: 'Install git, or choose another workspace.',
      cause: error,
    })
  }
}

/** Its answer's text without the last line end. @throws KikiError `conflict` with what git says where it fails. */
export async function gitText(deps: GitDeps, place: GitPlace, args: readonly string[]): Promise<string> {
  const { code, stdout, problem } = await runGit(deps, place, args)
  if (code === 0) return stdout.replace(/\n$/, '')
  throw new KikiError('conflict', `git ${args[0]} failed: ${problem || `it ended with ${code}`}`, {
    hint: 'Mend the repository, then try again.',
  })
}

/** Names of all filters that the repository's configuration gives a program (gitattributes(5)). Reading them runs none. */
export async function configuredFilters(deps: GitDeps, place: GitPlace): Promise<string[]> {
  const asked = ['config', '--null', '--name-only', '--get-regexp', '^filter\\..*\\.(clean|smudge|process)$']
  const { code, stdout, problem } = await runGit(deps, place, asked)
  // 1: there is none.
  if (code === 1) return []
  if (code !== 0) throw new KikiError('conflict', `The repository's configuration cannot be read: ${problem}`)
  const keys = stdout.split('\0').filter((key) => key !== '')
  return [...new Set(keys.map((key) => key.slice('filter.'.length, key.lastIndexOf('.'))))]
}

function environmentOf(env: GitDeps['env'], place: GitPlace): Record<string, string> {
  const passed = ['PATH', 'HOME', 'TMPDIR', 'SYSTEMROOT'].flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    ...Object.fromEntries(passed),
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    // Also above `protocol.NAME.allow`: what a partial clone lacks is not fetched.
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_LAZY_FETCH: '1',
    ...(place.gitDir === undefined ? {} : { GIT_DIR: place.gitDir }),
    ...(place.workTree === undefined ? {} : { GIT_WORK_TREE: place.workTree }),
    ...(place.index === undefined ? {} : { GIT_INDEX_FILE: place.index }),
    ...settingsOf(place.filters ?? []),
  }
}

/** In variables rather than arguments: a filter's name may hold any sign (git-config(1), GIT_CONFIG_COUNT). */
function settingsOf(filters: readonly string[]): Record<string, string> {
  const off = filters.flatMap((name) => [
    [`filter.${name}.clean`, ''],
    [`filter.${name}.smudge`, ''],
    [`filter.${name}.process`, ''],
    [`filter.${name}.required`, 'false'],
  ])
  const all = [...Object.entries(SETTINGS), ...off]
  return {
    GIT_CONFIG_COUNT: String(all.length),
    ...Object.fromEntries(
      all.flatMap(([key = '', value = ''], n) => [
        [`GIT_CONFIG_KEY_${n}`, key],
        [`GIT_CONFIG_VALUE_${n}`, value],
      ]),
    ),
  }
}

function oneLine(stderr: string): string {
  return stderr
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .slice(0, 500)
}

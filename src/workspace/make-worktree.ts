import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { configuredFilters, type GitDeps, gitText, runGit } from './git-run.js'

export interface WorktreeRequest {
  /** Real path of the top of a repository's work tree. */
  repository: string
  branch: string
  /** Where it is to stand; nothing is there yet. */
  path: string
}

export interface MadeWorktree {
  /** Git's own folder, and within it that of this worktree. */
  commonDir: string
  gitDir: string
  /** The commit that it begins at. */
  base: string
  /** The branch was made too. */
  madeBranch: boolean
  /** Filters that its files would need and that were not run. */
  filtersOff: string[]
}

/** Largest file of attributes that is looked at, in bytes; git itself takes none that is larger than 100 MiB. */
const MAX_ATTRIBUTES = 1024 * 1024

/**
 * Makes a git worktree on a branch: a new one from HEAD, or one that exists and is checked out nowhere (SE-10). No program that the
 * repository names is run: files that need a filter are written as they are stored.
 * @throws KikiError `invalid_arguments` for a folder that is no top of a repository and for what is no name of a branch, `conflict`
 * where the branch is checked out elsewhere, there is no commit yet, or git refuses; nothing is left behind then.
 */
export async function makeWorktree(deps: GitDeps, request: WorktreeRequest): Promise<MadeWorktree> {
  const { repository, branch, path } = request
  const at = { cwd: repository }
  await mustBeTop(deps, repository)
  await mustBeBranchName(deps, repository, branch)
  const head = await runGit(deps, at, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'])
  if (head.code !== 0)
    throw new KikiError('conflict', `"${repository}" has no commit yet, so there is nothing to check out.`, {
      hint: 'Commit something first, or make the session without a worktree.',
    })
  await mustBeFree(deps, repository, branch)
  const exists = (await runGit(deps, at, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).code === 0
  const commonDir = await gitText(deps, at, ['rev-parse', '--path-format=absolute', '--git-common-dir'])
  // Nothing is checked out yet: which filters there are may depend on the worktree itself (includeIf).
  const what = exists ? [path, branch] : ['--no-track', '-b', branch, path, 'HEAD']
  await gitText(deps, at, ['worktree', 'add', '--quiet', '--no-checkout', ...what])
  try {
    const gitDir = await gitText(deps, { cwd: path }, ['rev-parse', '--absolute-git-dir'])
    const there = { cwd: path, gitDir, workTree: path }
    const filters = await configuredFilters(deps, there)
    await gitText(deps, { ...there, filters }, ['read-tree', '--reset', '-u', '--no-recurse-submodules', 'HEAD'])
    const base = await gitText(deps, there, ['rev-parse', 'HEAD'])
    return {
      commonDir,
      gitDir,
      base,
      madeBranch: !exists,
      filtersOff: await filtersNeeded(deps, there, filters, commonDir),
    }
  } catch (error) {
    // Nobody has worked in it yet.
    await gitText(deps, at, ['worktree', 'remove', '--force', path])
    if (!exists) await gitText(deps, at, ['branch', '--quiet', '-D', '--', branch])
    throw error
  }
}

async function mustBeTop(deps: GitDeps, repository: string): Promise<void> {
  const { code, stdout, problem } = await runGit(deps, { cwd: repository }, ['rev-parse', '--show-toplevel'])
  if (code !== 0) {
    throw new KikiError('invalid_arguments', `No git worktree can be made of "${repository}": ${problem}`, {
      hint: 'Choose the top folder of a git repository as the workspace, or leave the worktree out.',
    })
  }
  const top = stdout.replace(/\n$/, '')
  if (top === repository) return
  throw new KikiError('invalid_arguments', `"${repository}" is not the top folder of its git repository.`, {
    hint: `Choose "${top}" as the workspace: a worktree is always of the whole repository.`,
  })
}

async function mustBeBranchName(deps: GitDeps, repository: string, branch: string): Promise<void> {
  const { code } = await runGit(deps, { cwd: repository }, ['check-ref-format', `refs/heads/${branch}`])
  if (code === 0 && branch !== 'HEAD' && !branch.startsWith('-')) return
  throw new KikiError('invalid_arguments', `"${branch}" cannot be the name of a branch.`, {
    hint: 'Use letters, digits, "-", "_", "." and "/", as in feature/login.',
  })
}

async function mustBeFree(deps: GitDeps, repository: string, branch: string): Promise<void> {
  const list = await gitText(deps, { cwd: repository }, ['worktree', 'list', '--porcelain'])
  const taken = list.split('\n\n').find((block) => block.split('\n').includes(`branch refs/heads/${branch}`))
  if (taken === undefined) return
  const where = /^worktree (.*)$/m.exec(taken)?.[1] ?? repository
  throw new KikiError('conflict', `Branch ${branch} is checked out in "${where}".`, {
    hint: 'Name another branch, or make a session in that folder.',
  })
}

/** Names of filters that some file here would need: the configured ones, and those that attributes name and the owner's own settings may hold. */
async function filtersNeeded(
  deps: GitDeps,
  place: { cwd: string; gitDir: string; workTree: string },
  configured: readonly string[],
  commonDir: string,
): Promise<string[]> {
  const list = await gitText(deps, place, ['ls-files', '-z', '--', '.gitattributes', ':(glob)**/.gitattributes'])
  const files = list.split('\0').filter((name) => name !== '')
  const texts = [...files.map((name) => join(place.cwd, name)), join(commonDir, 'info/attributes')].map(smallText)
  const named = texts.flatMap((text) => [...text.matchAll(/(?<=\s)filter=(\S+)/g)].map((found) => found[1] ?? ''))
  const needed: string[] = []
  for (const name of new Set([...configured, ...named])) {
    // Git's pathspecs take no other signs in a value; such a name counts as needed where attributes name it.
    if (!/^[\w-]+$/.test(name)) {
      if (named.includes(name)) needed.push(name)
      continue
    }
    if ((await gitText(deps, place, ['ls-files', '-z', '--', `:(attr:filter=${name})`])) !== '') needed.push(name)
  }
  return needed.sort()
}

function smallText(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isFile() && stat.size <= MAX_ATTRIBUTES ? readFileSync(path, 'utf8') : ''
}

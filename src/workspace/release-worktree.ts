import { lstatSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { configuredFilters, type GitDeps, type GitPlace, gitText, runGit } from './git-run.js'

/** A worktree as it was made. */
export interface OwnWorktree {
  path: string
  branch: string
  commonDir: string
  gitDir: string
  base: string
  madeBranch: boolean
}

/** What became of it. */
export type Released = { kept: true; why: string } | { kept: false; branchRemoved: boolean }

/** What git leaves in a worktree's own folder while something is unfinished. */
const UNFINISHED = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'BISECT_LOG', 'rebase-merge', 'rebase-apply']

/**
 * Removes a worktree that holds nothing of its own: no change, no untracked or ignored file, no commit that no other branch, remote
 * branch or tag has, nothing unfinished. Anything else keeps it (SE-10). The branch goes too where Kiki made it and nothing was
 * ever committed to it. All of Kiki's calls name git's folder as it was when the worktree was made: what the worktree's own `.git`
 * says now is not followed.
 * @throws KikiError as git's calls; then it is as it was.
 */
export async function releaseWorktree(deps: GitDeps, own: OwnWorktree): Promise<Released> {
  const { path, branch, base, commonDir } = own
  const why = await ownWork(deps, own)
  if (why !== undefined) return { kept: true, why }
  const at = { cwd: commonDir, gitDir: commonDir }
  const filters = await configuredFilters(deps, { cwd: commonDir, gitDir: own.gitDir })
  // Without --force: git looks once more.
  const removed = await runGit(deps, { ...at, filters }, ['worktree', 'remove', path])
  if (removed.code !== 0) return { kept: true, why: `git keeps it: ${removed.problem}` }
  if (!own.madeBranch) return { kept: false, branchRemoved: false }
  const log = await gitText(deps, at, ['reflog', 'show', '--format=%H', `refs/heads/${branch}`, '--'])
  if (log.split('\n').length > 1) return { kept: false, branchRemoved: false }
  // Only if it is still where it began.
  const { code } = await runGit(deps, at, ['update-ref', '-d', `refs/heads/${branch}`, base])
  return { kept: false, branchRemoved: code === 0 }
}

/** What in it would be lost; undefined where nothing would. */
async function ownWork(deps: GitDeps, { path, branch, gitDir }: OwnWorktree): Promise<string | undefined> {
  if (lstatSync(gitDir, { throwIfNoEntry: false })?.isDirectory() !== true) return 'git does not know it any more'
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return 'its folder is gone or was replaced'
  if (!pointsTo(path, gitDir)) return 'its .git file was changed'
  const unfinished = UNFINISHED.find((name) => lstatSync(join(gitDir, name), { throwIfNoEntry: false }) !== undefined)
  if (unfinished !== undefined) return `something is unfinished in it (${unfinished})`
  const place = { cwd: path, gitDir, workTree: path }
  const head = await runGit(deps, place, ['symbolic-ref', '--quiet', 'HEAD'])
  if (head.stdout.trim() !== `refs/heads/${branch}`) return `it is not on branch ${branch} any more`
  const filters = await configuredFilters(deps, place)
  return (await ownFiles(deps, { ...place, filters })) ?? (await ownCommits(deps, place, branch))
}

function pointsTo(path: string, gitDir: string): boolean {
  const file = join(path, '.git')
  const stat = lstatSync(file, { throwIfNoEntry: false })
  return stat?.isFile() === true && stat.size < 4096 && readFileSync(file, 'utf8').trim() === `gitdir: ${gitDir}`
}

async function ownFiles(deps: GitDeps, place: GitPlace & { gitDir: string }): Promise<string | undefined> {
  const staged = await runGit(deps, place, [
    'diff-index',
    '--cached',
    '--quiet',
    '--ignore-submodules=all',
    'HEAD',
    '--',
  ])
  if (staged.code === 1) return 'changes are staged in it'
  if (staged.code !== 0) return `git cannot tell what is staged in it: ${staged.problem}`
  // By a new index: the worktree's own may say that a file is to be taken for unchanged.
  const index = join(place.gitDir, 'kiki-index')
  try {
    await gitText(deps, { ...place, index }, ['read-tree', 'HEAD'])
    const list = await gitText(deps, { ...place, index }, [
      ...['status', '--porcelain=v1', '-z', '--no-renames', '--untracked-files=normal', '--ignored=traditional'],
      '--ignore-submodules=all',
    ])
    const entries = list.split('\0').filter((entry) => entry !== '')
    if (entries.length === 0) return undefined
    const count = (isOne: (state: string) => boolean) => entries.filter((entry) => isOne(entry.slice(0, 2))).length
    const untracked = count((state) => state === '??')
    const ignored = count((state) => state === '!!')
    return `it holds ${counts({ changed: entries.length - untracked - ignored, untracked, ignored })} files or folders`
  } finally {
    rmSync(index, { force: true })
  }
}

function counts(of: Record<string, number>): string {
  return Object.entries(of)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ')
}

async function ownCommits(deps: GitDeps, place: GitPlace, branch: string): Promise<string | undefined> {
  const others = ['--not', `--exclude=${branch}`, '--branches', '--remotes', '--tags']
  const count = await gitText(deps, place, ['rev-list', '--count', `refs/heads/${branch}`, ...others])
  if (count === '0') return undefined
  return `branch ${branch} has ${count} ${count === '1' ? 'commit' : 'commits'} that nothing else has`
}

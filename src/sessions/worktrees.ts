import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { z } from 'zod'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { Store } from '../store/store.js'
import type { WorktreeRow } from '../store/worktrees.js'
import type { HomeFence } from '../workspace/fence.js'
import { filtersOf, type GitDeps, git, mustGit } from '../workspace/git-run.js'
import { bindWorkspace } from '../workspace/workspace.js'
import type { newSessionSchema, Session, Sessions } from './sessions.js'

/** What became of a worktree when its session ended. */
export interface Released {
  path: string
  branch: string
  kept: boolean
  /** Why it was kept, or what was removed. */
  says: string
}

/** Sessions in git worktrees of their own (SE-10). */
export interface Worktrees {
  /**
   * A session in a new worktree of the repository at `input.workspace`, on a branch that is made where it is not there yet.
   * @throws KikiError `invalid_arguments` for no repository or no branch name, `conflict` with git's own words, and as
   * `Sessions.create`.
   */
  createSession(
    input: z.output<typeof newSessionSchema>,
    branch: string,
  ): Promise<{ session: Session; notes: string[] }>
  /** To be called when the session is over: removes the worktree unless something in it exists nowhere else. */
  release(ref: string): Promise<Released | undefined>
}

export interface WorktreesDeps extends GitDeps {
  store: Store
  clock: Clock
  sessions: Pick<Sessions, 'create'>
  fence: HomeFence
  /** The platform's folder for data: neither the home nor the workspace. */
  dataFolder: string
}

/** Ignored folders that are made again by the project's own tools. */
const MADE_AGAIN =
  /(?:^|\/)(?:node_modules|dist|build|out|target|\.next|\.cache|coverage|__pycache__|\.venv|\.tox|\.pytest_cache)\/$/

export function createWorktrees(deps: WorktreesDeps): Worktrees {
  const { store, clock, sessions } = deps

  async function make(repository: string, branch: string) {
    const inside = await git(deps, repository, ['rev-parse', '--show-toplevel'])
    const top = inside.out.trim()
    if (inside.exitCode !== 0) {
      throw new KikiError('invalid_arguments', `"${repository}" is in no git repository.`, {
        hint: 'Name a repository, or leave the worktree out.',
      })
    }
    const named = await git(deps, top, ['check-ref-format', '--branch', branch])
    if (named.exitCode !== 0 || branch.startsWith('-')) {
      throw new KikiError('invalid_arguments', `"${branch}" is no name for a branch.`, {
        hint: 'Use a name such as feature/search.',
      })
    }
    const known = (await git(deps, top, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).exitCode === 0
    const base = known ? null : (await mustGit(deps, top, ['rev-parse', '--verify', 'HEAD^{commit}'])).trim()
    const filters = await filtersOf(deps, top)
    const path = freshFolder(deps.dataFolder, basename(top), clock)
    const add = known ? ['--', path, branch] : ['-b', branch, '--', path, 'HEAD']
    await mustGit(deps, top, ['worktree', 'add', '--quiet', ...add], filters)
    const notes =
      filters.length === 0
        ? []
        : [`Filters were left out (${filters.join(', ')}): their files stand as they are stored.`]
    return { repository: top, branch, path: realpathSync.native(path), base, notes }
  }

  /** Why something in it would be lost; undefined where nothing would. */
  async function atStake({ path, repository }: WorktreeRow): Promise<string | undefined> {
    const filters = await filtersOf(deps, repository)
    const { exitCode, out } = await git(
      deps,
      path,
      ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--ignored=matching'],
      filters,
    )
    if (exitCode !== 0) return 'git cannot tell its state'
    const lines = out.split('\0').filter((line) => line !== '')
    if (lines.some((line) => !line.startsWith('!! '))) return 'it holds changes that are not committed'
    if (lines.some((line) => !MADE_AGAIN.test(line.slice(3)))) return 'it holds ignored files that exist nowhere else'
    const head = await git(deps, path, ['symbolic-ref', '--quiet', 'HEAD'])
    return head.exitCode === 0 ? undefined : 'no branch is checked out in it, so its commits may exist nowhere else'
  }

  async function remove(row: WorktreeRow): Promise<string> {
    // Ignored files that are made again are no reason for git to refuse; changes were looked for just now.
    await mustGit(deps, row.repository, ['worktree', 'remove', '--', row.path], await filtersOf(deps, row.repository))
    const tip = (
      await git(deps, row.repository, ['rev-parse', '--verify', '--quiet', `refs/heads/${row.branch}`])
    ).out.trim()
    if (row.base === null || tip !== row.base) return `the worktree was removed; the branch ${row.branch} stays`
    await mustGit(deps, row.repository, ['update-ref', '-d', `refs/heads/${row.branch}`, row.base])
    return `the worktree and its branch ${row.branch}, which had nothing of its own, were removed`
  }

  return {
    async createSession(input, branch) {
      const repository = bindWorkspace(input.workspace, deps.fence)
      const { notes, ...made } = await make(repository, branch)
      try {
        const session = await sessions.create({
          ...input,
          workspace: made.path,
          title: input.title ?? `${basename(made.repository)} (${branch})`,
        })
        await store.commits.durable(() =>
          store.worktrees.insert({ ...made, session_ref: session.ref, made_at: clock.now() }),
        )
        return { session, notes }
      } catch (error) {
        await remove({ ...made, session_ref: '', made_at: 0 })
        throw error
      }
    },
    async release(ref) {
      const row = store.worktrees.get(ref)
      if (row === undefined || !existsSync(row.path)) return undefined
      const { path, branch } = row
      const others = store.worktrees.openSessionsIn(path).filter((one) => one !== ref)
      const reason = others.length > 0 ? `session ${others[0]} works in it too` : await atStake(row)
      if (reason !== undefined) return { path, branch, kept: true, says: `the worktree ${path} is kept: ${reason}` }
      const says = await remove(row)
      await store.commits.durable(() => store.worktrees.remove(ref))
      return { path, branch, kept: false, says }
    },
  }
}

function freshFolder(data: string, name: string, clock: Clock): string {
  const folder = join(data, 'worktrees')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return join(folder, `${name.replace(/[^A-Za-z0-9._-]/g, '_') || 'work'}-${newId('ext', clock.now()).slice(-8)}`)
}

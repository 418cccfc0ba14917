import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Clock } from '../lib/clock.js'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import type { Store } from '../store/store.js'
import type { WorktreeRow } from '../store/worktrees.js'
import type { HomeFence } from '../workspace/fence.js'
import type { GitDeps } from '../workspace/git-run.js'
import { makeWorktree } from '../workspace/make-worktree.js'
import { type OwnWorktree, releaseWorktree } from '../workspace/release-worktree.js'
import { bindWorkspace } from '../workspace/workspace.js'

/** A session's git worktree as its owner sees it. */
export interface Worktree {
  repository: string
  branch: string
  madeBranch: boolean
  filtersOff: string[]
}

/** What became of a worktree when the last session in it ended. */
export interface EndedWorktree {
  path: string
  branch: string
  kept: boolean
  /** Why it is kept. */
  why?: string
  branchRemoved: boolean
}

export interface WorktreeDeps extends GitDeps {
  store: Store
  clock: Clock
  log: Log
  fence: HomeFence
  /** Where worktrees stand: under the platform's data folder. */
  folder: string
}

export type Worktrees = ReturnType<typeof createWorktrees>

/** Worktrees that sessions work in: made with them, and removed with the last one if nothing of its own is in it (SE-10). */
export function createWorktrees(deps: WorktreeDeps) {
  const { store, clock } = deps
  const { worktrees } = store
  return {
    /** @throws KikiError as `bindWorkspace` and `makeWorktree`; then nothing is left behind. @returns its path. */
    async make(workspace: string, branch: string): Promise<string> {
      const repository = bindWorkspace(workspace, deps.fence)
      const path = placeFor(deps, repository)
      await store.commits.durable(() => worktrees.begin({ path, repository, branch, created_at: clock.now() }))
      try {
        const made = await makeWorktree(deps, { repository, branch, path })
        await store.commits.durable(() =>
          worktrees.made({
            path,
            common_dir: made.commonDir,
            git_dir: made.gitDir,
            base: made.base,
            made_branch: made.madeBranch ? 1 : 0,
            filters_off: JSON.stringify(made.filtersOff),
          }),
        )
        return path
      } catch (error) {
        await store.commits.durable(() => worktrees.remove(path))
        throw error
      }
    },

    /** At the start of a host: forgets what a dead one had not begun on disk, and says what it left half made. */
    async settle(): Promise<void> {
      for (const path of worktrees.unfinished()) {
        if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
          await store.commits.durable(() => worktrees.remove(path))
        } else {
          const hint = 'look into it, then: git worktree remove --force'
          deps.log.warn(
            { worktree: path, hint },
            'an earlier host did not finish making a worktree; no session uses it',
          )
        }
      }
    },

    get(workspace: string): Worktree | undefined {
      const row = worktrees.get(workspace)
      return row === undefined ? undefined : fromRow(row)
    },

    /**
     * After the end of a session: removes its worktree, unless another open session works in it or it holds something. A failure of
     * git keeps it too, and does not keep the session from ending.
     */
    async release(workspace: string): Promise<EndedWorktree | undefined> {
      const row = worktrees.get(workspace)
      if (row === undefined) return undefined
      const { path, branch } = row
      const kept = (why: string) => ({ path, branch, kept: true, why, branchRemoved: false })
      if (worktrees.openSessions(path) > 0) return kept('another open session works in it')
      const own = ownOf(row)
      if (own === undefined) return kept('it was not made to the end')
      try {
        const released = await releaseWorktree(deps, own)
        if (released.kept) return kept(released.why)
        await store.commits.durable(() => worktrees.remove(path))
        return { path, branch, kept: false, branchRemoved: released.branchRemoved }
      } catch (error) {
        deps.log.warn({ worktree: path, error: messageOf(error) }, 'a worktree could not be looked at and is kept')
        return kept(`it could not be looked at: ${messageOf(error)}`)
      }
    },
  }
}

/** One sentence for whoever ended the session. */
export function endedWords({ path, branch, kept, why, branchRemoved }: EndedWorktree): string {
  if (kept) return `Its worktree ${path} (branch ${branch}) is kept: ${why}.`
  return `Its worktree ${path} held nothing of its own and is removed; ${
    branchRemoved ? `so is its branch ${branch}, to which nothing was committed` : `branch ${branch} stays`
  }.`
}

/** A new place for a worktree. @throws KikiError `path_denied` where it would lie in Kiki's home or in the repository. */
function placeFor({ folder, fence }: Pick<WorktreeDeps, 'folder' | 'fence'>, repository: string): string {
  const hint = 'Set XDG_DATA_HOME to a folder that lies elsewhere, and start the host again.'
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const real = bindWorkspace(folder, fence)
  if (real === repository || real.startsWith(`${repository}/`)) {
    throw new KikiError('path_denied', `Worktrees would stand in "${real}", inside the repository itself.`, { hint })
  }
  return join(real, `${basename(repository)}-${randomUUID().slice(0, 13)}`)
}

function fromRow({ repository, branch, made_branch, filters_off }: WorktreeRow): Worktree {
  return { repository, branch, madeBranch: made_branch === 1, filtersOff: JSON.parse(filters_off) as string[] }
}

function ownOf({ path, branch, common_dir, git_dir, base, made_branch }: WorktreeRow): OwnWorktree | undefined {
  if (common_dir === null || git_dir === null || base === null) return undefined
  return { path, branch, commonDir: common_dir, gitDir: git_dir, base, madeBranch: made_branch === 1 }
}

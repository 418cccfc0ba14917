import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { KikiError } from '../lib/errors.js'

/** What confined commands must not change in a folder that they may write to (SB-01), and what git needs beside it. */
export interface GuardedPlaces {
  /** There, and not to be changed. */
  frozen: string[]
  /** There, and not to be moved away, because something frozen is inside. */
  fixed: string[]
  /** Git's own folder of a linked worktree, elsewhere. */
  writable: string[]
  /** Not there, and not to be made. */
  absent: string[]
  /** Not there; where it stands like something in their way git would not work, so it is looked for afterwards. */
  forbidden: string[]
}

/** Folders that are looked into for repositories of their own. */
const MAX_FOLDERS = 2000
const MAX_DEPTH = 4
/** Longest of git's small files, in bytes. */
const MAX_BYTES = 4096

/**
 * @param root a real path.
 * @param isPlaceholder whether what is there stands only for nothing.
 * @throws KikiError `sandbox_unavailable` where `.git` or `.kiki` is a symbolic link: what it leads to cannot be held.
 */
export function guardedPlaces(root: string, isPlaceholder: (path: string) => boolean): GuardedPlaces {
  const places: GuardedPlaces = { frozen: [], fixed: [], writable: [], absent: [], forbidden: [] }
  const kiki = join(root, '.kiki')
  if (isPlaceholder(kiki)) places.absent.push(kiki)
  else guard(places, kiki)
  const git = join(root, '.git')
  switch (isPlaceholder(git) ? undefined : kindOf(git)) {
    case undefined:
      places.absent.push(git)
      break
    case 'folder':
      guardRepository(places, git)
      break
    case 'file':
      places.frozen.push(git)
      guardLinked(places, git)
  }
  for (const nested of nestedRepositories(root)) guardRepository(places, nested)
  return places
}

function guard(places: GuardedPlaces, path: string): void {
  if (kindOf(path) === undefined) places.absent.push(path)
  else places.frozen.push(path)
}

/** A repository's own folder: its hooks and configuration, those of its submodules, and of its worktrees but for their work. */
function guardRepository(places: GuardedPlaces, git: string): void {
  places.fixed.push(git)
  guard(places, join(git, 'hooks'))
  if (kindOf(join(git, 'config')) !== undefined) places.frozen.push(join(git, 'config'))
  for (const name of ['config.worktree', 'commondir']) {
    if (kindOf(join(git, name)) === undefined) places.forbidden.push(join(git, name))
    else places.frozen.push(join(git, name))
  }
  for (const name of foldersIn(join(git, 'modules'))) {
    const module = join(git, 'modules', name)
    if (kindOf(join(module, 'HEAD')) === 'file') guardRepository(places, module)
  }
}

/** Git's folder of a linked worktree, if both name each other as git has made them: a made-up one gives nothing. */
function guardLinked(places: GuardedPlaces, gitFile: string): void {
  const named = smallFile(gitFile)?.match(/^gitdir: (.+?)\s*$/)?.[1]
  const own = named === undefined ? undefined : real(resolve(dirname(gitFile), named))
  const back = own === undefined ? undefined : smallFile(join(own, 'gitdir'))?.trim()
  const common = own === undefined ? undefined : smallFile(join(own, 'commondir'))?.trim()
  if (own === undefined || back === undefined || common === undefined) return
  const shared = real(resolve(own, common))
  if (shared === undefined || dirname(own) !== join(shared, 'worktrees')) return
  if (!isAbsolute(back) || real(back) !== gitFile || kindOf(join(shared, 'objects')) !== 'folder') return
  places.writable.push(shared)
  guardRepository(places, shared)
  places.fixed.push(join(shared, 'worktrees'), own)
  places.frozen.push(join(own, 'gitdir'), join(own, 'commondir'))
  guard(places, join(own, 'config.worktree'))
  for (const name of foldersIn(join(shared, 'worktrees'))) {
    const other = join(shared, 'worktrees', name)
    if (other !== own) places.frozen.push(other)
  }
}

function nestedRepositories(root: string): string[] {
  const found: string[] = []
  let folders = [root]
  let seen = 0
  for (let depth = 0; depth < MAX_DEPTH && folders.length > 0; depth++) {
    const next: string[] = []
    for (const folder of folders) {
      for (const name of foldersIn(folder)) {
        if (name === 'node_modules' || name === '.git' || seen++ > MAX_FOLDERS) continue
        const path = join(folder, name)
        next.push(path)
        if (isFolder(join(path, '.git'))) found.push(join(path, '.git'))
      }
    }
    folders = next
  }
  return found
}

function kindOf(path: string): 'folder' | 'file' | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  if (stat.isSymbolicLink()) {
    throw new KikiError(
      'sandbox_unavailable',
      `"${path}" is a symbolic link: a sandbox cannot protect what it leads to.`,
      {
        hint: 'Put the real folder there, or the owner turns the sandbox of this connection off.',
      },
    )
  }
  return stat.isDirectory() ? 'folder' : 'file'
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function foldersIn(path: string): string[] {
  if (!isFolder(path)) return []
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
}

function smallFile(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isFile() && stat.size <= MAX_BYTES ? readFileSync(path, 'utf8') : undefined
}

function real(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : realpathSync.native(path)
}

import { lstatSync, readFileSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'

/** Longest file of git's own that is read here, in bytes. */
const MAX_BYTES = 4096

/** The branch that is checked out in `root`, read from git's files without running git; undefined outside a repository or on a detached head. */
export function currentBranch(root: string): string | undefined {
  const folder = gitFolder(root)
  const head = folder === undefined ? undefined : smallFile(join(folder, 'HEAD'))
  return head?.match(/^ref: refs\/heads\/(\S+)\s*$/)?.[1]
}

/**
 * Git's own folders of a work tree, whatever they are called: that of this work tree, and the one that it shares with others. Empty
 * where `root` is not the top of one.
 */
export function gitFoldersOf(root: string): string[] {
  const folder = gitFolder(root)
  if (folder === undefined) return []
  const own = resolve(folder)
  const common = smallFile(join(own, 'commondir'))?.trim()
  return common === undefined ? [own] : [own, resolve(own, common)]
}

function gitFolder(root: string): string | undefined {
  const path = join(root, '.git')
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  const target = smallFile(path)?.match(/^gitdir: (.+?)\s*$/)?.[1]
  if (target === undefined) return undefined
  return isAbsolute(target) ? target : join(root, target)
}

function smallFile(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat?.isFile() && stat.size <= MAX_BYTES ? readFileSync(path, 'utf8') : undefined
}

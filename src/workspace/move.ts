import { readdirSync, readlinkSync, renameSync } from 'node:fs'
import { KikiError, systemCode } from '../lib/errors.js'
import { descend, type Node, sameNode } from './descend.js'
import { cancelled, fileError, notRegular } from './errors.js'
import { type ChangeContext, identityOf, MAX_CHANGE_BYTES, namesFolder } from './files.js'
import { holdMissing, type MadeFolders } from './folders.js'
import { sha256, syncFolder } from './journal.js'
import { missing } from './near-names.js'
import { recordRemoval, requireRemovable } from './remove.js'
import { type Place, walk } from './walk.js'
import { confirm, readWhole, renameNew, type Target } from './write.js'

export interface Moved {
  from: string
  to: string
  type: 'file' | 'directory' | 'link'
  /** True where a file or link that was there has been replaced. */
  replaced: boolean
}

/**
 * Moves or renames a file, a link (not what it points to) or a folder, and makes missing folders; recorded before (FI-12).
 * Nothing is replaced unless `overwrite` is set, and a folder never is.
 * @returns paths as shown to the client.
 * @throws KikiError as the walk, and `conflict` where the goal exists, `invalid_arguments` (another file system, a folder
 * into itself), `path_denied` (Kiki's home, a root).
 */
export async function moveFile(
  context: ChangeContext,
  from: string,
  to: string,
  options: { overwrite?: boolean } = {},
): Promise<Moved> {
  if (context.signal.aborted) throw cancelled()
  const source = walk(context.workspace, from, { follow: false })
  try {
    if (source.node === undefined) throw missing(context.workspace, from, source.folder, source.missing[0] ?? from)
    const goal = walk(context.workspace, to, { follow: false })
    try {
      if (!source.node.stat.isDirectory() && goal.node === undefined && /\/\.?$/.test(to)) throw namesFolder(to)
      return moveBetween(context, source, source.node, goal, options.overwrite === true)
    } catch (error) {
      throw fileError(error, goal.display)
    } finally {
      goal.close()
    }
  } catch (error) {
    throw fileError(error, source.display)
  } finally {
    source.close()
  }
}

function moveBetween(context: ChangeContext, source: Place, node: Node, goal: Place, overwrite: boolean): Moved {
  const type = movable(context, source, node)
  requireGoal(source, node, goal, overwrite)
  const folders = holdMissing(context, goal.folder, goal.missing.slice(0, -1))
  const target: Target = { folder: folders.last, name: goal.missing.at(-1) ?? goal.name, display: goal.display }
  try {
    const spelling = goal.node !== undefined && sameNode(goal.node.stat, node.stat)
    if (goal.node !== undefined && !spelling) recordRemoval(context.journal, goal, goal.node)
    context.journal.record({
      kind: 'move',
      path: source.path,
      to: goal.path,
      mode: Number(node.stat.mode & 0o7777n),
      identity: identityOf(node.stat),
      ...(type === 'file' ? {} : { node: type }),
      ...contentHash(source, node, type),
    })
    confirm(source, node)
    confirm(target, goal.node)
    if (goal.node === undefined) renameNew(source.folder, source.name, target.folder, target.name)
    else renameSync(descend.at(source.folder, source.name), descend.at(target.folder, target.name))
    syncBoth(source, folders)
    return { from: source.display, to: goal.display, type, replaced: goal.node !== undefined && !spelling }
  } catch (error) {
    folders.remove()
    throw error
  } finally {
    folders.close()
  }
}

/** What undo knows the moved thing by; a file that is too large or unreadable is known by its identity alone. */
function contentHash(source: Place, node: Node, type: Moved['type']): { beforeSha256?: string } {
  if (type === 'directory') return {}
  if (type === 'link') return { beforeSha256: sha256(readlinkSync(descend.at(source.folder, source.name), 'buffer')) }
  if (node.stat.size > BigInt(MAX_CHANGE_BYTES)) return {}
  try {
    return { beforeSha256: sha256(readWhole(source, node, MAX_CHANGE_BYTES)) }
  } catch (error) {
    if (systemCode(error) === 'EACCES' || systemCode(error) === 'EPERM') return {}
    throw error
  }
}

function movable(context: ChangeContext, source: Place, node: Node): Moved['type'] {
  if (node.stat.isDirectory()) {
    requireRemovable(context.workspace, source, node)
    return 'directory'
  }
  if (node.stat.isSymbolicLink()) return 'link'
  if (node.stat.isFile()) return 'file'
  throw notRegular(source.display, node.stat)
}

function requireGoal(source: Place, node: Node, goal: Place, overwrite: boolean): void {
  if (goal.path === source.path)
    throw refusal(`"${goal.display}" is where it is already`, 'Choose another path for "to".')
  if (goal.path.startsWith(`${source.path}/`)) {
    throw refusal(`"${goal.display}" lies inside "${source.display}"`, 'A folder cannot be moved into itself.')
  }
  if (goal.folder.stat.dev !== source.folder.stat.dev) {
    throw refusal(`"${goal.display}" is on another file system`, 'Write a copy there, then delete the original.')
  }
  if (goal.node === undefined || isSpelling(source, node, goal)) return
  if (goal.node.stat.isDirectory()) {
    throw taken(goal.display, 'a folder of that name exists', `Give the full new path, such as "${goal.display}/NAME".`)
  }
  if (sameNode(goal.node.stat, node.stat)) {
    throw taken(goal.display, 'both names are one file (hard links)', 'Delete the name that is not wanted.')
  }
  if (node.stat.isDirectory()) {
    throw taken(goal.display, 'a folder cannot replace it', 'Delete it first, or choose another path for "to".')
  }
  if (!overwrite) throw taken(goal.display, 'it exists', 'Set overwrite to true to replace it, or choose another path.')
}

/** The same entry by another letter case or Unicode form, where the file system takes them for one name. */
function isSpelling(source: Place, node: Node, goal: Place): boolean {
  if (goal.node === undefined || !sameNode(goal.node.stat, node.stat)) return false
  if (!sameNode(goal.folder.stat, source.folder.stat)) return false
  return !readdirSync(descend.at(goal.folder, '.')).includes(goal.name)
}

function syncBoth(source: Place, goal: MadeFolders): void {
  syncFolder(descend.at(goal.last, '.'))
  if (!sameNode(goal.last.stat, source.folder.stat)) syncFolder(descend.at(source.folder, '.'))
}

function refusal(says: string, hint: string): KikiError {
  return new KikiError('invalid_arguments', `${says}; nothing was moved.`, { hint })
}

function taken(display: string, says: string, hint: string): KikiError {
  return new KikiError('conflict', `"${display}": ${says}; nothing was moved.`, { hint, data: { path: display } })
}

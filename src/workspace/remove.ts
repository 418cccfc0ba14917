import { readlinkSync, rmdirSync, unlinkSync } from 'node:fs'
import { KikiError, messageOf } from '../lib/errors.js'
import { createPace, runInSlices } from '../lib/slices.js'
import { descend, type Node } from './descend.js'
import { cancelled, changedMeanwhile, fileError, homeDenied, notRegular, notRemovable } from './errors.js'
import { type ChangeContext, identityOf } from './files.js'
import { type Journal, MAX_KEPT_BYTES, sha256, syncFolder } from './journal.js'
import { missing } from './near-names.js'
import { MAX_TREE_ENTRIES, type TreeEntry, treeOf } from './tree.js'
import { type Place, walk } from './walk.js'
import type { Workspace } from './workspace.js'
import { confirm, readWhole } from './write.js'

export interface Removed {
  path: string
  display: string
  type: 'file' | 'directory' | 'link'
  /** What was removed, the thing itself included. */
  entries: number
}

/** What a removal would take, without taking it; entries are real paths, the thing itself last. @throws KikiError as {@link removeFile}. */
export async function previewRemoval(
  { workspace, signal }: Pick<ChangeContext, 'workspace' | 'signal'>,
  path: string,
): Promise<{ display: string; entries: string[] }> {
  const place = walk(workspace, path, { follow: false })
  try {
    if (place.node === undefined) throw missing(workspace, path, place.folder, place.missing[0] ?? path)
    if (!place.node.stat.isDirectory()) return { display: place.display, entries: [place.path] }
    const entries = await runInSlices(treeOf(workspace, place, place.node, MAX_KEPT_BYTES), signal)
    return { display: place.display, entries: entries.map((entry) => entry.path) }
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/**
 * Removes a file, a link (never what it points to) or, with `recursive`, a folder; everything is recorded before (FI-12).
 * A folder is looked through first: what could not be brought back (pipes, devices, sockets, names that are not UTF-8),
 * Kiki's home, or more than 10,000 entries or 256 MiB refuses the whole.
 * @throws KikiError as the walk, and `invalid_arguments`, `too_large`, `conflict`; `cancelled` may leave a part removed
 * and recorded.
 */
export async function removeFile(
  context: ChangeContext,
  path: string,
  options: { recursive?: boolean } = {},
): Promise<Removed> {
  if (context.signal.aborted) throw cancelled()
  const place = walk(context.workspace, path, { follow: false })
  try {
    if (place.node === undefined) throw missing(context.workspace, path, place.folder, place.missing[0] ?? path)
    if (!place.node.stat.isDirectory()) {
      requireRestorable(place.display, place.node)
      const type = removeNode(context.journal, place, place.node)
      syncFolder(descend.at(place.folder, '.'))
      return { path: place.path, display: place.display, type, entries: 1 }
    }
    requireRemovable(context.workspace, place, place.node)
    if (options.recursive !== true) throw needsRecursive(place.display)
    const entries = await runInSlices(treeOf(context.workspace, place, place.node, MAX_KEPT_BYTES), context.signal)
    await removeTree(context, place, entries)
    syncFolder(descend.at(place.folder, '.'))
    return { path: place.path, display: place.display, type: 'directory', entries: entries.length }
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

function requireRestorable(display: string, { stat }: Node): void {
  if (!stat.isFile() && !stat.isSymbolicLink()) throw notRemovable(display, stat)
}

/** Refuses folders that a session or the host stands on. */
export function requireRemovable(workspace: Workspace, place: Place, node: Node): void {
  if (workspace.fence.isAbove(node.stat)) throw homeDenied(place.display)
  if (workspace.roots.some((root) => root === place.path || root.startsWith(`${place.path}/`))) {
    throw new KikiError('path_denied', `"${place.display}" is a folder that this session works in.`, {
      hint: 'Name what is inside it instead.',
    })
  }
}

async function removeTree(context: ChangeContext, top: Place, entries: readonly TreeEntry[]): Promise<void> {
  const pause = createPace()
  for (const [index, entry] of entries.entries()) {
    await pause()
    try {
      if (context.signal.aborted) throw cancelled()
      removeEntry(context, entry)
    } catch (error) {
      const before = index === 0 && !context.signal.aborted
      throw before ? error : partly(top.display, index, entries.length, error)
    }
  }
}

/** Each entry is reached by a walk of its own: the folder may have changed since it was looked through. */
function removeEntry(context: ChangeContext, entry: TreeEntry): void {
  const place = walk(context.workspace, entry.path, { follow: false })
  try {
    if (place.node === undefined || place.path !== entry.path) throw changedMeanwhile(place.display)
    removeNode(context.journal, place, place.node)
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/** Records what is there, then removes exactly that. */
export function removeNode(journal: Journal, place: Place, node: Node): Removed['type'] {
  const type = recordRemoval(journal, place, node)
  confirm(place, node)
  if (type === 'directory') rmdirSync(descend.at(place.folder, place.name))
  else unlinkSync(descend.at(place.folder, place.name))
  return type
}

/** Keeps in the journal what undo needs to bring a node back. */
export function recordRemoval(journal: Journal, place: Place, node: Node): Removed['type'] {
  const { stat } = node
  const base = {
    kind: 'delete',
    path: place.path,
    mode: Number(stat.mode & 0o7777n),
    owner: `${stat.uid}:${stat.gid}`,
    identity: identityOf(stat),
  } as const
  if (stat.isDirectory()) {
    journal.record({ ...base, node: 'directory' })
    return 'directory'
  }
  const isLink = stat.isSymbolicLink()
  if (!isLink && !stat.isFile()) throw notRegular(place.display, stat)
  const before = isLink
    ? readlinkSync(descend.at(place.folder, place.name), 'buffer')
    : readWhole(place, node, MAX_KEPT_BYTES)
  const kind = isLink ? ({ node: 'link' } as const) : stat.nlink > 1n ? { shared: `${stat.birthtimeNs}` } : {}
  journal.record({ ...base, ...kind, beforeSha256: sha256(before) }, before)
  return isLink ? 'link' : 'file'
}

function needsRecursive(display: string): KikiError {
  return new KikiError('invalid_arguments', `"${display}" is a folder.`, {
    hint: `Set recursive to true to remove it with everything in it (at most ${MAX_TREE_ENTRIES} entries).`,
  })
}

function partly(display: string, done: number, all: number, cause: unknown): KikiError {
  const known = cause instanceof KikiError ? cause : undefined
  const why = known?.code === 'cancelled' ? 'Cancelled' : `Stopped: ${messageOf(cause)} This was`
  return new KikiError(
    known?.code ?? 'internal_error',
    `${why} while removing "${display}": ${done} of ${all} entries were removed.`,
    { hint: 'Undo brings them back.', data: { ...known?.data, effects_possible: done > 0 }, cause },
  )
}

import { isUtf8 } from 'node:buffer'
import { accessSync, closeSync, constants, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { KikiError } from '../lib/errors.js'
import type { Sliced } from '../lib/slices.js'
import { descend, type Held, type Node } from './descend.js'
import { changedMeanwhile, fileError, homeDenied, notRemovable } from './errors.js'
import { displayOf } from './paths.js'
import type { Place } from './walk.js'
import { mustNotBeRefused, type Workspace } from './workspace.js'

export interface TreeEntry {
  /** Absolute real path. */
  path: string
}

export const MAX_TREE_ENTRIES = 10_000
/** Folders within folders; each is held open while those below it are looked at. */
const MAX_TREE_DEPTH = 256

interface Gathering {
  workspace: Workspace
  entries: TreeEntry[]
  bytes: bigint
  maxBytes: number
}

/** The right to take entries out of a folder. */
const EMPTY_IT = constants.W_OK | constants.X_OK
/** Entries that are looked at between two places where the work may pause. */
const STEPS = 64

/**
 * Everything in a held folder and the folder itself, those inside first, without following links.
 * @throws KikiError `too_large` past 10,000 entries, 256 levels or `maxBytes` of content; `path_denied` where Kiki's home
 * or a hard link to a file of it is inside; `invalid_arguments` for anything that could not be made again;
 * `permission_denied` for a file that may not be read or a folder that may not be emptied.
 */
export function* treeOf(workspace: Workspace, place: Place, node: Node, maxBytes: number): Sliced<TreeEntry[]> {
  const gathering: Gathering = { workspace, entries: [], bytes: 0n, maxBytes }
  requireAccess(descend.at(place.folder, '.'), EMPTY_IT, displayOf(workspace, place.folder.path))
  requireSameDisk(place.folder, node, place.display)
  yield* gather(gathering, heldAs(place.path, node), 1)
  gathering.entries.push({ path: place.path })
  return gathering.entries
}

function* gather(gathering: Gathering, folder: Held, depth: number): Sliced<void> {
  if (depth > MAX_TREE_DEPTH) throw tooMuch(gathering, folder.path, `is more than ${MAX_TREE_DEPTH} levels deep`)
  const names = readdirSync(descend.at(folder, '.'), { encoding: 'buffer' })
  if (names.length > 0) requireAccess(descend.at(folder, '.'), EMPTY_IT, displayOf(gathering.workspace, folder.path))
  for (const raw of names) {
    if (!isUtf8(raw)) throw notUtf8(gathering, folder.path)
    const name = raw.toString()
    const node = descend.openNode(folder, name)
    if (node === undefined) throw changedMeanwhile(displayOf(gathering.workspace, join(folder.path, name)))
    try {
      yield* take(gathering, folder, join(folder.path, name), node, depth)
    } finally {
      if (node.fd !== undefined) closeSync(node.fd)
    }
  }
}

function* take(gathering: Gathering, folder: Held, path: string, node: Node, depth: number): Sliced<void> {
  const { workspace } = gathering
  const { stat } = node
  const display = displayOf(workspace, path)
  mustNotBeRefused(workspace, path)
  if (workspace.fence.isHome(stat) || workspace.fence.holds(stat)) throw homeDenied(display)
  if (gathering.entries.length % STEPS === STEPS - 1) yield
  requireSameDisk(folder, node, display)
  if (stat.isDirectory()) yield* gather(gathering, heldAs(path, node), depth + 1)
  else if (stat.isFile()) gathering.bytes += sizeOfReadable(folder, node, display)
  else if (!stat.isSymbolicLink()) throw notRemovable(display, stat)
  gathering.entries.push({ path })
  if (gathering.entries.length >= MAX_TREE_ENTRIES)
    throw tooMuch(gathering, path, `has over ${MAX_TREE_ENTRIES} entries`)
  if (gathering.bytes > BigInt(gathering.maxBytes))
    throw tooMuch(gathering, path, `holds over ${gathering.maxBytes} bytes`)
}

/** What is mounted inside is not to be emptied by the way, and its folder cannot be removed. */
function requireSameDisk(folder: Held, { stat }: Node, display: string): void {
  if (stat.dev === folder.stat.dev) return
  throw new KikiError('invalid_arguments', `"${display}" is on another disk, mounted there; nothing was removed.`, {
    hint: 'Ask the owner to unmount it, or delete what is inside it by its own path.',
    data: { path: display },
  })
}

/** A file that cannot be read could not be brought back. */
function sizeOfReadable(folder: Held, node: Node, display: string): bigint {
  const path = node.fd === undefined ? descend.at(folder, basename(display)) : `/proc/self/fd/${node.fd}`
  requireAccess(path, constants.R_OK, display)
  return node.stat.size
}

/** Found out before anything is removed, not in the middle. */
function requireAccess(path: string, mode: number, display: string): void {
  try {
    accessSync(path, mode)
  } catch (error) {
    const says = mode === constants.R_OK ? 'may not be read, so undo could not bring it back' : 'may not be emptied'
    const kept = fileError(error, display)
    if (!(kept instanceof KikiError) || kept.data?.system === 'EROFS') throw kept
    throw new KikiError('permission_denied', `"${display}" ${says}; nothing was removed.`, {
      hint: kept.hint ?? '',
      data: { path: display },
      cause: error,
    })
  }
}

function heldAs(path: string, node: Node): Held {
  if (node.fd === undefined) throw new Error('a folder is always held')
  return { fd: node.fd, path, stat: node.stat }
}

function tooMuch(gathering: Gathering, path: string, says: string): KikiError {
  return new KikiError('too_large', `The folder ${says} (counted up to "${displayOf(gathering.workspace, path)}").`, {
    hint: 'Remove smaller folders one by one, or use a command; nothing was removed.',
  })
}

function notUtf8(gathering: Gathering, folder: string): KikiError {
  return new KikiError(
    'invalid_arguments',
    `"${displayOf(gathering.workspace, folder)}" holds a name that is not UTF-8.`,
    {
      hint: 'Such an entry could not be brought back by undo: remove it with a command; nothing was removed.',
    },
  )
}

import { isUtf8 } from 'node:buffer'
import { readdirSync, readlinkSync } from 'node:fs'
import { KikiError } from '../lib/errors.js'
import { descend, type Node } from './descend.js'
import { identityOf } from './files.js'
import { MAX_KEPT_BYTES, sha256 } from './journal.js'
import { type Place, walk } from './walk.js'
import type { Workspace } from './workspace.js'
import { readWhole } from './write.js'

/** What stands at a path, as far as undo compares it. */
export interface Found {
  /** `other`: a pipe, socket or device, or a path that now leads somewhere else. */
  type: 'file' | 'link' | 'directory' | 'other'
  /** Of a file's content or a link's target; undefined for a file of more than 256 MiB, which no recorded change left. */
  sha256?: string | undefined
  /** `device:inode`. */
  identity: string
  /** Bytes of a file. */
  size: number
  /** Names of a file. */
  links: number
  /** Permission bits. */
  mode: number
}

/**
 * Looks at a recorded path by the safe walk, following no link.
 * @returns undefined where nothing is there.
 * @throws KikiError as the walk: `path_denied` where the path is not inside the session's folders any more.
 */
export function find(workspace: Workspace, path: string): Found | undefined {
  let place: Place
  try {
    place = walk(workspace, path, { follow: false })
  } catch (error) {
    // A file stands where a folder on the way was.
    if (error instanceof KikiError && error.code === 'invalid_arguments') return undefined
    throw error
  }
  try {
    if (place.path !== path) return { type: 'other', identity: '', size: 0, links: 1, mode: 0 }
    return place.node === undefined ? undefined : foundAt(place, place.node)
  } finally {
    place.close()
  }
}

/** The same of a node that a walk holds. */
export function foundAt(place: Place, node: Node): Found {
  const { stat } = node
  const found = {
    identity: identityOf(stat),
    size: Number(stat.size),
    links: Number(stat.nlink),
    mode: Number(stat.mode & 0o7777n),
  }
  if (stat.isDirectory()) return { ...found, type: 'directory' }
  if (stat.isSymbolicLink()) {
    return { ...found, type: 'link', sha256: sha256(readlinkSync(descend.at(place.folder, place.name), 'buffer')) }
  }
  if (!stat.isFile()) return { ...found, type: 'other' }
  if (stat.size > BigInt(MAX_KEPT_BYTES)) return { ...found, type: 'file' }
  return { ...found, type: 'file', sha256: sha256(readWhole(place, node, MAX_KEPT_BYTES)) }
}

/** Names in a folder; none where there is no folder. A name that is not UTF-8 counts too. */
export function namesIn(workspace: Workspace, path: string): string[] {
  const place = walk(workspace, path, { follow: false })
  try {
    if (place.node?.stat.isDirectory() !== true || place.path !== path) return []
    const folder = { fd: place.node.fd ?? -1, path: place.path, stat: place.node.stat }
    const names = readdirSync(descend.at(folder, '.'), { encoding: 'buffer' })
    return names.map((name) => (isUtf8(name) ? name.toString() : `\0${name.toString('latin1')}`))
  } finally {
    place.close()
  }
}

import { dirname } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { changedMeanwhile, notRegular } from './errors.js'
import { identityOf, MAX_CHANGE_BYTES, readExisting } from './files.js'
import { sha256 } from './journal.js'
import { missing } from './near-names.js'
import { type Place, walk } from './walk.js'
import type { Workspace } from './workspace.js'
import { readWhole, requireWritable } from './write.js'

/** A file or link as it is, or would be once the patch has come so far. */
export interface PatchFile {
  type: 'file' | 'link'
  /** Where it is on disk now; undefined for one that the patch makes. */
  onDisk: string | undefined
  /** `device:inode` on disk. */
  identity: string
  size: number
  mode: number
  /** Content; undefined until something needs it. */
  bytes: Buffer | undefined
  /** Whether the patch changes its content. */
  changed: boolean
}

/** A name and what would be there. */
export interface Slot {
  /** Real path. */
  path: string
  display: string
  /** Device of the folder that it is in, or would be. */
  device: bigint
  file: PatchFile | undefined
}

/** The files that a patch names, as they would be after the sections so far. Nothing is changed on disk. */
export interface PatchFiles {
  /** The name itself, links not followed. @throws KikiError for folders and what is no file. */
  entry(path: string): Slot
  /** The file that is to be changed: a link leads to its target. @throws KikiError `not_found`, `permission_denied`, … */
  target(path: string): Slot & { file: PatchFile }
  /** A file as it was before the patch, which is what copies are made of. @throws KikiError as `target`. */
  original(path: string): { bytes: Buffer; mode: number }
  set(slot: Slot, file: PatchFile | undefined): void
  /** Content of a file. @throws KikiError `too_large` (64 MiB). */
  bytesOf(slot: Slot & { file: PatchFile }): Buffer
  /** Refuses a new file where the patch has one above or below. */
  requireRoom(slot: Slot): void
}

export function createPatchFiles(workspace: Workspace): PatchFiles {
  const slots = new Map<string, Slot>()
  // Names of one file (hard links) are one object, so that a change by one name shows at the others.
  const shared = new Map<string, PatchFile>()

  function look(path: string, follow: boolean): Slot {
    const place = walk(workspace, path, { follow })
    try {
      const known = slots.get(place.path)
      if (known !== undefined) return known
      const file = place.node && fileAt(place, shared)
      return { path: place.path, display: place.display, device: place.folder.stat.dev, file }
    } finally {
      place.close()
    }
  }

  return {
    entry: (path) => look(path, false),
    target(path) {
      const own = look(path, false)
      const slot = slots.has(own.path) || own.file?.type !== 'link' ? own : look(path, true)
      const { file } = slot
      if (file === undefined) throw slots.has(slot.path) ? takenAway(slot) : notThere(workspace, path)
      if (file.type === 'link') throw movedLink(slot)
      if (file.onDisk !== undefined) requireChangeable(workspace, file)
      return { ...slot, file }
    },
    original: (path) => readOriginal(workspace, path),
    set: (slot, file) => slots.set(slot.path, { ...slot, file }),
    bytesOf({ file, display }) {
      file.bytes ??= readOnDisk(workspace, file, display)
      return file.bytes
    },
    requireRoom(slot) {
      const made = [...slots.values()].filter(({ file }) => file !== undefined)
      const other = made.find(({ path }) => isAbove(path, slot.path) || isAbove(slot.path, path))
      if (other !== undefined) throw noRoom(slot, other)
    },
  }
}

function fileAt(place: Place, shared: Map<string, PatchFile>): PatchFile {
  const { stat } = place.node ?? {}
  if (stat === undefined || !(stat.isFile() || stat.isSymbolicLink())) throw notFile(place)
  const identity = identityOf(stat)
  const known = shared.get(identity)
  if (known !== undefined) return known
  const file: PatchFile = {
    type: stat.isFile() ? 'file' : 'link',
    onDisk: place.path,
    identity,
    size: Number(stat.size),
    mode: Number(stat.mode & 0o7777n),
    bytes: undefined,
    changed: false,
  }
  shared.set(identity, file)
  return file
}

function notFile(place: Place): KikiError {
  if (place.node === undefined) throw new Error('a place with nothing is no file')
  return notRegular(place.display, place.node.stat)
}

/** Read as it is changed: whole, and only if it may be written. */
function readOnDisk(workspace: Workspace, file: PatchFile, display: string): Buffer {
  const place = walk(workspace, file.onDisk ?? '', { follow: false })
  try {
    if (place.node === undefined || identityOf(place.node.stat) !== file.identity) throw changedMeanwhile(display)
    return readWhole(place, place.node, MAX_CHANGE_BYTES)
  } finally {
    place.close()
  }
}

function readOriginal(workspace: Workspace, path: string): { bytes: Buffer; mode: number } {
  const place = walk(workspace, path)
  try {
    const { node } = place
    if (node === undefined) throw missing(workspace, path, place.folder, place.missing[0] ?? path)
    if (!node.stat.isFile()) throw notRegular(place.display, node.stat)
    return { bytes: readWhole(place, node, MAX_CHANGE_BYTES), mode: Number(node.stat.mode & 0o7777n) }
  } finally {
    place.close()
  }
}

function requireChangeable(workspace: Workspace, file: PatchFile): void {
  const place = walk(workspace, file.onDisk ?? '', { follow: false })
  try {
    if (place.node === undefined) throw changedMeanwhile(place.display)
    requireWritable(place, place.node)
    if (file.bytes === undefined) file.bytes = readExisting(place, place.node)
  } finally {
    place.close()
  }
}

/** What a step of the patch expects to find. */
export function expectationOf({ type, identity, bytes, changed }: PatchFile): {
  type: 'file' | 'link'
  identity?: string
  sha256?: string
} {
  if (bytes !== undefined && type === 'file') return { type, sha256: sha256(bytes) }
  return changed ? { type } : { type, identity }
}

function isAbove(folder: string, path: string): boolean {
  for (let above = dirname(path); above.length >= folder.length; above = dirname(above)) {
    if (above === folder) return true
    if (above === dirname(above)) return false
  }
  return false
}

function notThere(workspace: Workspace, path: string): KikiError {
  const place = walk(workspace, path)
  try {
    return missing(workspace, path, place.folder, place.missing[0] ?? path)
  } finally {
    place.close()
  }
}

function takenAway({ display }: Slot): KikiError {
  return new KikiError('conflict', `"${display}" is deleted or moved by the patch itself before.`, {
    hint: 'Put the sections into the order in which they are to be done, and name the file by its new path.',
    data: { path: display },
  })
}

function movedLink({ display }: Slot): KikiError {
  return new KikiError(
    'invalid_arguments',
    `"${display}" is a link that the patch moves; its target is not changed by it.`,
    {
      hint: 'Change the file that it points to by that path, in a section of its own.',
      data: { path: display },
    },
  )
}

function noRoom({ display }: Slot, other: Slot): KikiError {
  return new KikiError('conflict', `"${display}" and "${other.display}" cannot both be files: one lies in the other.`, {
    hint: 'Correct one of the paths.',
    data: { path: display },
  })
}

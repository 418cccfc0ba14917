import { randomBytes } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { KikiError, systemCode } from '../lib/errors.js'
import { descend, type Held, type Node, sameNode } from './descend.js'
import { changedMeanwhile } from './errors.js'
import { syncFolder, writeAll } from './journal.js'

/** Where a file is or will be: a name in a held folder. */
export interface Target {
  folder: Held
  name: string
  display: string
}

export function temporaryName(): string {
  return `.kiki-${randomBytes(9).toString('hex')}.tmp`
}

/** Reads a whole regular file through its held node: whatever happens to its name, these are its bytes. */
export function readWhole(target: Target, node: Node, maxBytes: number): Buffer {
  if (node.stat.size > BigInt(maxBytes)) throw tooLarge(target.display, node.stat.size, maxBytes)
  const fd = descend.reopen(target.folder, target.name, node, constants.O_RDONLY)
  try {
    const bytes = readUnchanged(fd, node.stat)
    if (bytes === undefined) throw changedMeanwhile(target.display)
    return bytes
  } finally {
    closeSync(fd)
  }
}

/** All bytes of an open file; undefined where somebody else is writing it: then neither the old nor the new size can be trusted. */
export function readUnchanged(fd: number, stat: Node['stat']): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(Number(stat.size))
  let length = 0
  while (length < bytes.length) {
    const read = readSync(fd, bytes, length, bytes.length - length, length)
    if (read === 0) break
    length += read
  }
  return length === bytes.length && unchanged(fstatSync(fd, { bigint: true }), stat) ? bytes : undefined
}

/**
 * Puts `bytes` at the target so that it holds the old or the new content, whatever happens (FI-06): a new file beside
 * it, synced, then renamed over it. Mode and, where possible, owner stay; the new file is never more open than that.
 * @param old what is there now, as it was read; undefined to make a new file, which never replaces one.
 * @param rights what a new file gets instead of the system's defaults (undo brings back the one that was there), or the
 * permission bits that a replaced one gets instead of its own.
 * @throws KikiError `conflict` where the target is not what was read any more. The temporary file is gone then.
 */
export function replace(
  target: Target,
  bytes: Uint8Array,
  old: Node | undefined,
  temporary: string,
  rights?: Rights | 'executable' | number,
): void {
  const path = descend.at(target.folder, temporary)
  // A new file gets the umask and default ACL from the system; one that replaces gets its mode once it is complete.
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const given =
    old === undefined ? rights : { ...rightsOf(old.stat), ...(typeof rights === 'number' ? { mode: rights } : {}) }
  const fd = openSync(path, flags, typeof given === 'object' ? 0o600 : given === 'executable' ? 0o777 : 0o666)
  try {
    try {
      if (!descend.stillThere(target.folder)) throw changedMeanwhile(target.display)
      writeAll(fd, bytes)
      if (typeof given === 'object') setRights(fd, given)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    confirm(target, old)
    if (old === undefined) renameNew(target.folder, temporary, target.folder, target.name)
    else renameSync(path, descend.at(target.folder, target.name))
  } catch (error) {
    removeIfThere(path)
    throw error
  }
  syncFolder(descend.at(target.folder, '.'))
}

/**
 * Writes into the file itself, for one that has other hard links: they keep being one file. Not safe against a crash by
 * itself, so the earlier content must be in the journal before (FI-06).
 */
export function overwrite(target: Target, bytes: Uint8Array, old: Node): void {
  const fd = descend.reopen(target.folder, target.name, old, constants.O_WRONLY)
  try {
    confirm(target, old)
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done)
    ftruncateSync(fd, bytes.length)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Gives a file other permission bits. @param untouched true where nothing else of it was changed just now. */
export function changeMode(target: Target, node: Node, mode: number, untouched: boolean): void {
  const fd = descend.reopen(target.folder, target.name, node, constants.O_RDONLY)
  try {
    if (untouched) confirm(target, node)
    fchmodSync(fd, mode)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Refuses to replace what the owner made read-only: a rename would not ask. */
export function requireWritable(target: Target, node: Node): void {
  const path = node.fd === undefined ? descend.at(target.folder, target.name) : `/proc/self/fd/${node.fd}`
  try {
    accessSync(path, constants.W_OK)
  } catch (cause) {
    throw new KikiError('permission_denied', `"${target.display}" is read-only on disk.`, {
      hint: 'Ask the owner to make it writable, or write another file.',
      cause,
    })
  }
}

/** Checks, as late as possible, that the folder is at its path and the name still is what was read. */
export function confirm(target: Target, old: Node | undefined): void {
  const now = lstatSync(descend.at(target.folder, target.name), { bigint: true, throwIfNoEntry: false })
  const same = old === undefined ? now === undefined : now !== undefined && isSame(now, old.stat)
  if (!same || !descend.stillThere(target.folder)) throw changedMeanwhile(target.display)
}

/** Renames without replacing anything; a plain rename would. */
export function renameNew(from: Held, fromName: string, to: Held, toName: string): void {
  const [source, goal] = [descend.at(from, fromName), descend.at(to, toName)]
  try {
    linkSync(source, goal)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EEXIST' || code === 'EXDEV' || code === 'ENOENT') throw error
    // Folders and some file systems have no hard links: look, then rename.
    if (lstatSync(goal, { throwIfNoEntry: false }) !== undefined) throw changedMeanwhile(toName)
    renameSync(source, goal)
    return
  }
  unlinkSync(source)
}

/** A folder's own times change with what is in it, so only its identity counts. */
function isSame(now: Node['stat'], then: Node['stat']): boolean {
  return then.isDirectory() ? sameNode(now, then) : unchanged(now, then)
}

function unchanged(now: Node['stat'], then: Node['stat']): boolean {
  return sameNode(now, then) && now.size === then.size && now.mtimeNs === then.mtimeNs && now.ctimeNs === then.ctimeNs
}

/** Who owns a file or folder and what its mode is. */
export interface Rights {
  uid: number
  gid: number
  mode: number
}

function rightsOf(stat: Node['stat']): Rights {
  return { uid: Number(stat.uid), gid: Number(stat.gid), mode: Number(stat.mode & 0o7777n) }
}

/** Gives mode and, where the system permits it, owner. */
export function setRights(fd: number, { uid, gid, mode }: Rights): void {
  const own = fstatSync(fd)
  const same = own.uid === uid && own.gid === gid
  // Set-id bits must not pass to a different owner.
  const given = same || tryOwner(fd, uid, gid) || (tryOwner(fd, own.uid, gid) && own.uid === uid)
  fchmodSync(fd, given ? mode : mode & 0o1777)
}

/** Only the superuser can give a file away; the owner may choose among their groups. */
function tryOwner(fd: number, uid: number, gid: number): boolean {
  try {
    fchownSync(fd, uid, gid)
    return true
  } catch (error) {
    if (systemCode(error) !== 'EPERM') throw error
    return false
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}

export function tooLarge(display: string, size: bigint, maxBytes: number): KikiError {
  return new KikiError('too_large', `"${display}" has ${size} bytes; at most ${maxBytes} can be changed at once.`, {
    hint: 'Change it with a command, or split the file.',
    data: { size: Number(size), limit: maxBytes },
  })
}

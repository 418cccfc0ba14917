import type { BigIntStats } from 'node:fs'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'

/** What a directory entry is, in the words that results use. */
export type NodeType = 'file' | 'directory' | 'link' | 'fifo' | 'socket' | 'device'

export function nodeType(stat: BigIntStats): NodeType {
  if (stat.isFile()) return 'file'
  if (stat.isDirectory()) return 'directory'
  if (stat.isSymbolicLink()) return 'link'
  if (stat.isFIFO()) return 'fifo'
  return stat.isSocket() ? 'socket' : 'device'
}

const TYPE_NAMES: Record<NodeType, string> = {
  file: 'a regular file',
  directory: 'a folder',
  link: 'a symbolic link',
  fifo: 'a named pipe (FIFO)',
  socket: 'a socket',
  device: 'a device',
}

/** The refusal of something that is not a regular file (FI-04, GU-51). */
export function notRegular(display: string, stat: BigIntStats): KikiError {
  const type = nodeType(stat)
  const hint = type === 'directory' ? 'Use List to see what is in a folder.' : 'Choose a regular file.'
  return new KikiError('invalid_arguments', `"${display}" is ${TYPE_NAMES[type]}, not a regular file.`, {
    hint,
    data: { path: display, type },
  })
}

/** The refusal to remove what undo could not make again (FI-12). */
export function notRemovable(display: string, stat: BigIntStats): KikiError {
  const type = nodeType(stat)
  return new KikiError('invalid_arguments', `"${display}" is ${TYPE_NAMES[type]}; nothing was removed.`, {
    hint: 'Delete removes files, links and folders, not pipes, sockets or devices.',
    data: { path: display, type },
  })
}

export function notFolder(display: string): KikiError {
  return new KikiError('invalid_arguments', `"${display}" is not a folder.`, {
    hint: 'Use List on the folder above it to see what is there.',
    data: { path: display },
  })
}

export function homeDenied(display: string): KikiError {
  return new KikiError('path_denied', `"${display}" belongs to Kiki's own home, which no tool may touch.`, {
    hint: "Choose a path outside Kiki's home.",
  })
}

/** The name no longer leads to what was read: somebody else changed it meanwhile. */
export function changedMeanwhile(display: string): KikiError {
  return new KikiError(
    'conflict',
    `"${display}" was changed by something else at the same moment; nothing was written.`,
    {
      hint: 'Read it again, then repeat the change.',
      data: { path: display },
    },
  )
}

export function cancelled(): KikiError {
  return new KikiError('cancelled', 'The operation was cancelled before this step.', {
    hint: 'Start it again if it is still wanted.',
  })
}

const SYSTEM: Record<
  string,
  [code: 'permission_denied' | 'invalid_arguments' | 'internal_error' | 'conflict', says: string, hint: string]
> = {
  EACCES: ['permission_denied', 'the operating system does not permit it', 'Ask the owner to change its permissions.'],
  EPERM: ['permission_denied', 'the operating system does not permit it', 'Ask the owner to change its permissions.'],
  EROFS: ['permission_denied', 'its file system is read-only', 'Choose a path on a writable file system.'],
  ENAMETOOLONG: ['invalid_arguments', 'the name is too long', 'Use a shorter name (at most 255 bytes each).'],
  EXDEV: ['invalid_arguments', 'it lies on another file system', 'Write a copy there, then delete the original.'],
  ENOTEMPTY: ['conflict', 'the folder is not empty', 'List the folder and repeat the call.'],
  EBUSY: ['conflict', 'it is in use, or a disk is mounted there', 'Ask the owner to free it, then repeat the call.'],
  EEXIST: ['conflict', 'something of that name appeared meanwhile', 'List the folder and repeat the call.'],
  ENOSPC: ['internal_error', 'the disk is full', 'Ask the owner to free some space, then repeat the call.'],
  EDQUOT: ['internal_error', 'the disk quota is used up', 'Ask the owner to free some space, then repeat the call.'],
  EMFILE: ['internal_error', 'too many files are open', 'Wait for other operations to end, then repeat the call.'],
  ENFILE: ['internal_error', 'too many files are open', 'Wait for other operations to end, then repeat the call.'],
  EIO: ['internal_error', 'the disk reported an error', 'Ask the owner to check the disk.'],
}

/** Turns a system error about `display` into a refusal that says what to do; anything else passes unchanged. */
export function fileError(error: unknown, display: string): unknown {
  if (error instanceof KikiError) return error
  const code = systemCode(error)
  if (code === undefined) return error
  // Links are never followed by an open: one that is met there has just been put there.
  if (code === 'ENOENT' || code === 'ELOOP' || code === 'EISDIR') return changedMeanwhile(display)
  if (code === 'ENOTDIR') return notFolder(display)
  const known = SYSTEM[code]
  const [kind, says, hint] = known ?? ['internal_error', messageOf(error), 'Ask the owner to look at the log.']
  return new KikiError(kind, `"${display}": ${says}.`, { hint, data: { path: display, system: code }, cause: error })
}

import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import { makePrivateFolders } from '../lib/folders.js'

/**
 * Makes the home, or a folder in it, where it is missing (0700).
 * @throws KikiError as {@link unusableHome}, naming the path.
 */
export function makeHomeFolder(path: string): void {
  try {
    makePrivateFolders(path)
  } catch (error) {
    throw unusableHome(path, error)
  }
}

/**
 * Why a path of the home cannot be made or written, and what to do about it.
 * @returns KikiError `permission_denied` (no right, read-only disk), `internal_error` (full disk), else `conflict`.
 */
export function unusableHome(path: string, error: unknown): KikiError {
  switch (systemCode(error)) {
    case 'EEXIST':
    case 'ENOTDIR':
      return new KikiError('conflict', `${path} cannot be a folder: a file stands there or above it.`, {
        hint: 'Move the file away, or choose another --home.',
        cause: error,
      })
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new KikiError('permission_denied', `${path} cannot be written (${messageOf(error)}).`, {
        hint: 'Choose a --home on a disk that this user can write to.',
        cause: error,
      })
    case 'ENOSPC':
    case 'EDQUOT':
      return new KikiError('internal_error', `${path} cannot be written: its disk is full (${messageOf(error)}).`, {
        hint: 'Free some space there, or choose a --home on another disk.',
        cause: error,
      })
    default:
      return new KikiError('conflict', `${path} cannot be made: ${messageOf(error)}.`, {
        hint: 'Choose another --home.',
        cause: error,
      })
  }
}

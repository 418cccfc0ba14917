import { readlinkSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runtimeDir } from '../config/home.js'
import { messageOf, systemCode } from '../lib/errors.js'
import { makePrivateFolders } from '../lib/folders.js'
import type { Log } from '../lib/log.js'

/** The folder of the locks between this user's hosts. Where there can be none, the one host of most users works as well. */
export function changeLocks(log: Log): string | undefined {
  try {
    const folder = join(runtimeDir(), 'kiki-locks')
    makePrivateFolders(folder)
    return folder
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'no locks between hosts: two of them must not work in one workspace')
    return undefined
  }
}

/** Leaves nothing behind where no other host uses the folder; one that does makes it again. */
export function leaveChangeLocks(folder: string | undefined): void {
  if (folder === undefined) return
  for (const left of [folder, ...(/^kiki-\d+$/.test(basename(dirname(folder))) ? [dirname(folder)] : [])]) {
    try {
      rmdirSync(left)
    } catch (error) {
      if (!IN_USE.includes(systemCode(error) ?? '')) throw error
    }
  }
}

const IN_USE = ['ENOTEMPTY', 'EEXIST', 'ENOENT', 'EBUSY']

/**
 * Keeps two hosts of one user (two homes, one workspace) from replacing one file at the same instant: between the last look at
 * it and the rename the other's change would be lost (FI-15). The lock is a link that names its holder's pid, so that it is
 * there at once or not at all, and that of a killed host is known.
 * @param dir a folder that all hosts of this user share, and nobody else.
 * @param identity `device:inode` of the file.
 * @returns what frees it; undefined where another host holds it.
 */
export function lockForChange(dir: string, identity: string): (() => void) | undefined {
  const path = join(dir, `change-${identity.replace(':', '-')}`)
  if (!take(path) && !(removeDead(path) && take(path))) return undefined
  return () => unlinkSync(path)
}

function take(path: string): boolean {
  try {
    symlinkSync(`${process.pid}`, path)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    if (systemCode(error) !== 'ENOENT') throw error
    // Another host has closed and taken the empty folder away.
    runtimeDir()
    makePrivateFolders(dirname(path))
    return take(path)
  }
}

/** True where the lock is there no more. It is moved aside first: only one of two can do that, and a new one is put back. */
function removeDead(path: string): boolean {
  const holder = holderOf(path)
  if (holder === undefined) return true
  if (isAlive(holder)) return false
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (holderOf(aside) !== holder) {
      renameSync(aside, path)
      return false
    }
    unlinkSync(aside)
    return true
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return true
    throw error
  }
}

function holderOf(path: string): number | undefined {
  try {
    return Number(readlinkSync(path))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}

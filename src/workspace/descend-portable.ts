import { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../lib/errors.js'
import { type Descend, type Held, isElsewhere, sameNode } from './descend.js'
import { changedMeanwhile } from './errors.js'

// NOT TESTED where Kiki is developed (Linux): this is the walk for platforms without /proc/self/fd, such as macOS.
// It checks by name, opens without following, and then, before a byte is used, verifies that the opened file is the
// one that was checked and that the folder is still at its path (PA-02's second way). Making, renaming and removing
// verify just before they act; a rename needs the temporary file's random name, so a swapped folder has nothing to rename.

const NOFOLLOW = constants.O_NOFOLLOW ?? 0
const NONBLOCK = constants.O_NONBLOCK ?? 0
const DIRECTORY = constants.O_DIRECTORY ?? 0

export const descendPortable: Descend = {
  at: (folder, name) => join(folder.path, name),

  openRoot(path) {
    let fd: number
    try {
      fd = openSync(path, constants.O_RDONLY | NOFOLLOW | DIRECTORY)
    } catch (error) {
      if (isElsewhere(systemCode(error))) return undefined
      throw error
    }
    const held = { fd, path, stat: fstatSync(fd, { bigint: true }) }
    if (isAt(held)) return held
    closeSync(fd)
    return undefined
  },

  openNode(folder, name) {
    const path = join(folder.path, name)
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stat === undefined) return undefined
    if (!stat.isDirectory()) return { fd: undefined, stat }
    const fd = openSync(path, constants.O_RDONLY | NOFOLLOW | DIRECTORY)
    const held = { fd, path, stat: fstatSync(fd, { bigint: true }) }
    if (isAt(held) && sameNode(held.stat, stat)) return held
    closeSync(fd)
    throw changedMeanwhile(path)
  },

  reopen(folder, name, node, flags) {
    const fd = openSync(join(folder.path, name), flags | NOFOLLOW | NONBLOCK)
    if (sameNode(fstatSync(fd, { bigint: true }), node.stat) && isAt(folder)) return fd
    closeSync(fd)
    throw changedMeanwhile(join(folder.path, name))
  },

  stillThere: isAt,
}

function isAt(folder: Held): boolean {
  try {
    return (
      realpathSync.native(folder.path) === folder.path && sameNode(statSync(folder.path, { bigint: true }), folder.stat)
    )
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

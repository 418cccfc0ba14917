import { closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs'
import { systemCode } from '../lib/errors.js'
import { type Descend, isElsewhere, type Node } from './descend.js'

/** `O_PATH`: holds a place without opening what is there, so no pipe waits, no device acts, and no lock is dropped. */
const O_PATH = 0o10000000
const HOLD = O_PATH | constants.O_NOFOLLOW

/** `openat` for Node: names are opened below a held folder through `/proc/self/fd/N/name` (GU-50). */
export const descendLinux: Descend = {
  at: (folder, name) => `/proc/self/fd/${folder.fd}/${name}`,

  openRoot(path) {
    let fd: number
    try {
      fd = openSync(path, HOLD | constants.O_DIRECTORY)
    } catch (error) {
      if (isElsewhere(systemCode(error))) return undefined
      throw error
    }
    const held = { fd, path, stat: fstatSync(fd, { bigint: true }) }
    // Folders above the root can be swapped too: the kernel says where the held folder really is.
    if (descendLinux.stillThere(held)) return held
    closeSync(fd)
    return undefined
  },

  openNode(folder, name) {
    let fd: number
    try {
      fd = openSync(`/proc/self/fd/${folder.fd}/${name}`, HOLD)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return undefined
      throw error
    }
    try {
      return { fd, stat: fstatSync(fd, { bigint: true }) }
    } catch (error) {
      closeSync(fd)
      throw error
    }
  },

  reopen: (_folder, _name, node, flags) => openSync(`/proc/self/fd/${heldFd(node)}`, flags | constants.O_NONBLOCK),

  stillThere(folder) {
    return readlinkSync(`/proc/self/fd/${folder.fd}`) === folder.path
  },
}

function heldFd(node: Node): number {
  if (node.fd === undefined) throw new Error('a node of the Linux walk is always held')
  return node.fd
}

import { isUtf8 } from 'node:buffer'
import { closeSync, readlinkSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { KikiError, systemCode } from '../lib/errors.js'
import { descend, type Held, type Node } from './descend.js'
import { fileError, homeDenied, notFolder } from './errors.js'
import { missing } from './near-names.js'
import { displayOf, namesAbove, namesOf, refuseOutside, type Start, startOf, startOfAbsolute } from './paths.js'
import { mustNotBeRefused, unavailable, type Workspace } from './workspace.js'

/** Where a path led, held open so that no later swap of names can change it. */
export interface Place {
  /** Absolute real path of the node, or the one that it would get. */
  path: string
  /** As shown to the client. */
  display: string
  /** The held folder that the node is in; where names are missing, the last folder that exists. */
  folder: Held
  /** The node's name in `folder`; empty where the path is a root itself. */
  name: string
  /** What is there; undefined where it is missing. */
  node: Node | undefined
  /** The names that do not exist below `folder`, outermost first. */
  missing: string[]
  close(): void
}

const MAX_LINKS = 40

/**
 * The safe walk (PA-01, PA-02, PA-03, GU-50): from a held root, one name at a time, following no link that it has not
 * read itself. Links that stay inside the roots work. Nothing is opened for reading; call `close()` in any case.
 * @param follow false to stop at the link itself where the last name is one.
 * @throws KikiError `invalid_arguments`, `path_denied`, `not_found` (a missing name before `..`), `permission_denied`,
 * `session_unavailable`.
 */
export function walk(workspace: Workspace, path: string, { follow = true } = {}): Place {
  const start = startOf(workspace, path)
  const held: Held[] = []
  try {
    return descendTo(workspace, path, start, held, follow)
  } catch (error) {
    closeAll(held)
    throw fileError(error, path)
  }
}

function descendTo(workspace: Workspace, path: string, start: Start, held: Held[], follow: boolean): Place {
  held.push(openRoot(workspace, start.root))
  let pending = start.names.reverse()
  let links = 0
  // The outermost link that the walk is within, and how many names follow it: what a refusal has to name.
  let within: { link: string; rest: number } | undefined
  const linkOf = () => (within !== undefined && pending.length >= within.rest ? within.link : undefined)
  const restart = (next: Start) => {
    closeAll(held)
    held.push(openRoot(workspace, next.root))
    pending = next.names.reverse()
  }
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const folder = last(held)
    if (name === '..') {
      if (held.length > 1) closeSync(held.pop()?.fd ?? -1)
      else restart(startAbove(workspace, folder.path, pending, path, linkOf()))
      continue
    }
    const node = descend.openNode(folder, name)
    if (node === undefined) {
      if (pending.includes('..')) throw missing(workspace, path, folder, name)
      return place(workspace, held, folder, name, undefined, [name, ...pending.reverse()])
    }
    const isLast = pending.length === 0
    if (node.stat.isSymbolicLink() && (follow || !isLast)) {
      closeNode(node)
      links += 1
      if (links > MAX_LINKS) throw tooManyLinks(path)
      const target = readLink(folder, name, path)
      // A name that stopped being a link is simply looked at again.
      if (target === undefined) {
        pending.push(name)
        continue
      }
      if (linkOf() === undefined) within = { link: displayOf(workspace, join(folder.path, name)), rest: pending.length }
      if (isAbsolute(target)) restart(startOfLink(workspace, target, pending, path, linkOf()))
      else pending.push(...namesOf(target).reverse())
      continue
    }
    if (node.stat.isDirectory()) {
      held.push(heldFolder(workspace, folder, name, node, path))
      continue
    }
    if (!isLast) {
      closeNode(node)
      throw notFolder(displayOf(workspace, join(folder.path, name)))
    }
    return placeOfFile(workspace, held, folder, name, node, path)
  }
  return placeOfFolder(workspace, held)
}

/** Opens a root and refuses one that is the home, or is not where it was (SE-09). */
function openRoot(workspace: Workspace, path: string): Held {
  const root = descend.openRoot(path)
  if (root === undefined) throw unavailable(path)
  if (!workspace.fence.isHome(root.stat)) return root
  closeSync(root.fd)
  throw homeDenied(path)
}

function heldFolder(workspace: Workspace, folder: Held, name: string, node: Node, asked: string): Held {
  const path = join(folder.path, name)
  if (node.fd === undefined) throw new Error('a folder is always held')
  if (!workspace.fence.isHome(node.stat) && path !== workspace.home) return { fd: node.fd, path, stat: node.stat }
  closeSync(node.fd)
  throw homeDenied(asked)
}

function placeOfFile(workspace: Workspace, held: Held[], folder: Held, name: string, node: Node, asked: string): Place {
  try {
    if (workspace.fence.holds(node.stat)) throw homeDenied(asked)
    return place(workspace, held, folder, name, node, [])
  } catch (error) {
    closeNode(node)
    throw error
  }
}

function placeOfFolder(workspace: Workspace, held: Held[]): Place {
  const own = last(held)
  const parent = held.at(-2)
  const node = { fd: own.fd, stat: own.stat }
  if (parent === undefined) return place(workspace, held, own, '', node, [])
  return place(workspace, held, parent, basename(own.path), node, [])
}

function place(
  workspace: Workspace,
  held: Held[],
  folder: Held,
  name: string,
  node: Node | undefined,
  missingNames: string[],
): Place {
  const path = node === undefined ? join(folder.path, ...missingNames) : join(folder.path, name)
  mustNotBeRefused(workspace, path)
  return {
    path,
    display: displayOf(workspace, path),
    folder,
    name,
    node,
    missing: missingNames,
    close() {
      if (node !== undefined && !node.stat.isDirectory()) closeNode(node)
      closeAll(held)
    },
  }
}

function startAbove(
  workspace: Workspace,
  root: string,
  pending: readonly string[],
  path: string,
  link: string | undefined,
): Start {
  return startOfAbsolute(workspace, namesAbove(root, pending.toReversed())) ?? refuseOutside(workspace, path, link)
}

function startOfLink(
  workspace: Workspace,
  target: string,
  pending: readonly string[],
  path: string,
  link: string | undefined,
): Start {
  const start = startOfAbsolute(workspace, namesOf(target)) ?? refuseOutside(workspace, path, link)
  return { root: start.root, names: [...start.names, ...pending.toReversed()] }
}

/** Undefined where the name is not a link any more. */
function readLink(folder: Held, name: string, path: string): string | undefined {
  let target: Buffer
  try {
    target = readlinkSync(descend.at(folder, name), 'buffer')
  } catch (error) {
    if (systemCode(error) === 'EINVAL' || systemCode(error) === 'ENOENT') return undefined
    throw error
  }
  if (isUtf8(target)) return target.toString()
  throw new KikiError('path_denied', `"${path}" is a link whose target is not UTF-8.`, {
    hint: 'Use the path that it points to.',
  })
}

function tooManyLinks(path: string): KikiError {
  return new KikiError('path_denied', `"${path}" leads through more than ${MAX_LINKS} links.`, {
    hint: 'Use the path that the links point to.',
  })
}

function last(held: readonly Held[]): Held {
  const folder = held.at(-1)
  if (folder === undefined) throw new Error('a walk always holds its root')
  return folder
}

function closeNode(node: Node): void {
  if (node.fd !== undefined) closeSync(node.fd)
}

function closeAll(held: Held[]): void {
  for (let folder = held.pop(); folder !== undefined; folder = held.pop()) closeSync(folder.fd)
}

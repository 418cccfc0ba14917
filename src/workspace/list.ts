import { isUtf8 } from 'node:buffer'
import { closeSync, type Dirent, lstatSync, readlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../lib/errors.js'
import { descend, type Held } from './descend.js'
import { cancelled, fileError, type NodeType, nodeType, notFolder } from './errors.js'
import { missing } from './near-names.js'
import { walk } from './walk.js'
import type { Workspace } from './workspace.js'

export interface ListedEntry {
  /** Relative to the listed folder; bytes that are not UTF-8 and control characters are escaped, in quotes then. */
  name: string
  type: NodeType
  /** Bytes. */
  size: number
  modified: Date
  /** Where a link points to; it was not followed. */
  target?: string
}

export interface Listing {
  display: string
  entries: ListedEntry[]
  /** How many entries there are in all. */
  total: number
  /** True where the look through stopped at 20,000 entries: `total` is the least. */
  capped: boolean
  /** True where Kiki's home lies inside and was left out (PA-03). */
  homeSkipped: boolean
  /** Folders that could not be read, as named in the list. */
  unreadable: string[]
}

/** Entries that one call looks through. */
export const MAX_LISTED = 20_000

interface Scan {
  workspace: Workspace
  signal: AbortSignal
  depth: number
  offset: number
  end: number
  listing: Listing
}

/**
 * Lists a folder, sorted by name, each folder followed by what is in it down to `depth`; links are not followed (FI-13).
 * Only the entries from `offset`, at most `limit`, are looked at closely.
 * @throws KikiError as the walk, `invalid_arguments` where it is no folder, `cancelled`.
 */
export async function listFolder(
  context: { workspace: Workspace; signal: AbortSignal },
  path: string,
  options: { depth: number; limit: number; offset: number },
): Promise<Listing> {
  const { workspace, signal } = context
  const place = walk(workspace, path)
  const { display } = place
  const listing: Listing = { display, entries: [], total: 0, capped: false, homeSkipped: false, unreadable: [] }
  try {
    if (place.node === undefined) throw missing(workspace, path, place.folder, place.missing[0] ?? path)
    if (!place.node.stat.isDirectory() || place.node.fd === undefined) throw notFolder(place.display)
    const { depth, offset, limit } = options
    const held = { fd: place.node.fd, path: place.path, stat: place.node.stat }
    await scanFolder({ workspace, signal, depth, offset, end: offset + limit, listing }, held, '', 1)
    return listing
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

async function scanFolder(scan: Scan, folder: Held, prefix: string, level: number): Promise<void> {
  const { listing } = scan
  for (const entry of await sortedEntries(folder)) {
    if (scan.signal.aborted) throw cancelled()
    if (listing.total >= MAX_LISTED) {
      listing.capped = true
      return
    }
    const shown = prefix + showName(entry.name)
    // A name that is not UTF-8 cannot be opened by any tool; it is only shown.
    const name = isUtf8(entry.name) ? entry.name.toString() : undefined
    const child = name !== undefined && mayBeFolder(entry) ? holdFolder(scan, folder, name) : undefined
    if (child === 'home') {
      listing.homeSkipped = true
      continue
    }
    try {
      if (!takeEntry(scan, folder, entry.name, shown)) continue
      if (child !== undefined && level < scan.depth) await scanInside(scan, child, shown, level)
    } finally {
      if (child !== undefined) closeSync(child.fd)
    }
  }
}

async function scanInside(scan: Scan, child: Held, shown: string, level: number): Promise<void> {
  try {
    await scanFolder(scan, child, `${shown}/`, level + 1)
  } catch (error) {
    if (systemCode(error) !== 'EACCES') throw error
    scan.listing.unreadable.push(shown)
  }
}

/** Counts an entry and, where it is on the page, looks at it. False where it is gone meanwhile. */
function takeEntry(scan: Scan, folder: Held, raw: Buffer, shown: string): boolean {
  const { listing } = scan
  const onPage = listing.total >= scan.offset && listing.total < scan.end
  if (onPage) {
    const path = Buffer.concat([Buffer.from(descend.at(folder, '')), raw])
    const stat = lstatSync(path, { throwIfNoEntry: false, bigint: true })
    if (stat === undefined) return false
    const type = nodeType(stat)
    const target = type === 'link' ? linkTarget(path) : undefined
    const entry = { name: shown, type, size: Number(stat.size), modified: stat.mtime }
    listing.entries.push(target === undefined ? entry : { ...entry, target })
  }
  listing.total += 1
  return true
}

/** Holds a folder, tells the home, and is undefined for anything else. */
function holdFolder(scan: Scan, folder: Held, name: string): Held | 'home' | undefined {
  const path = join(folder.path, name)
  const node = descend.openNode(folder, name)
  if (node?.fd === undefined) return undefined
  const isHome = scan.workspace.fence.isHome(node.stat) || path === scan.workspace.home
  if (node.stat.isDirectory() && !isHome) return { fd: node.fd, path, stat: node.stat }
  closeSync(node.fd)
  return isHome ? 'home' : undefined
}

async function sortedEntries(folder: Held): Promise<Dirent<Buffer>[]> {
  const found = await readdir(descend.at(folder, '.'), { withFileTypes: true, encoding: 'buffer' })
  return found.sort((a, b) => Buffer.compare(a.name, b.name))
}

/** Some file systems do not say in a listing what an entry is. */
function mayBeFolder(entry: Dirent<Buffer>): boolean {
  return entry.isDirectory() || !(entry.isFile() || entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket())
}

/** Undefined where it is no link any more. */
function linkTarget(path: Buffer): string | undefined {
  try {
    return showName(readlinkSync(path, 'buffer'))
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'EINVAL') return undefined
    throw error
  }
}

/** A path as results name it: one line, whatever characters its names hold, so that no name can pass for a note of Kiki's. */
export function shownPath(display: string): string {
  return showName(Buffer.from(display))
}

/** A name as one line of text: itself, or quoted with escapes where it holds control characters or is not UTF-8. */
export function showName(raw: Buffer): string {
  const name = raw.toString()
  if (isUtf8(raw) && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)) return name
  if (isUtf8(raw)) return JSON.stringify(name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeCharacter)
  let shown = ''
  for (const byte of raw) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
    shown += plain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  }
  return `"${shown}"`
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

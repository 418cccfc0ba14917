import { type BigIntStats, closeSync, constants, readFileSync } from 'node:fs'
import { KikiError } from '../lib/errors.js'
import { runFor, runInSlices, type Sliced } from '../lib/slices.js'
import { lockForChange } from './change-lock.js'
import { descend, type Node } from './descend.js'
import { cancelled, changedMeanwhile, fileError, type NodeType, nodeType, notFolder, notRegular } from './errors.js'
import { holdMissing } from './folders.js'
import { type Journal, sha256 } from './journal.js'
import { missing } from './near-names.js'
import { type Place, walk } from './walk.js'
import type { Workspace } from './workspace.js'
import {
  changeMode,
  overwrite,
  readWhole,
  replace,
  requireWritable,
  type Target,
  temporaryName,
  tooLarge,
} from './write.js'

/** A regular file held open; every later read goes through `fd`, so no swap of names can reach another file. */
export interface OpenedFile {
  fd: number
  stat: BigIntStats
  /** Absolute real path. */
  path: string
  /** As shown to the client: relative to the workspace root where it lies inside, else absolute. */
  display: string
  close(): void
}

/** A folder held open: `/proc/self/fd/<fd>` names it wherever its path leads later (on Linux). */
export type OpenedDirectory = OpenedFile

/** What a change of files needs: where, what keeps the earlier content, and what cancels it. */
export interface ChangeContext {
  workspace: Workspace
  journal: Journal
  signal: AbortSignal
}

/** The largest file, in bytes, before and after, that is changed as a whole. */
export const MAX_CHANGE_BYTES = 64 * 1024 * 1024

/**
 * Opens a regular file for reading by the safe walk; the file was identified before it is opened (GU-50, GU-51).
 * @throws KikiError `not_found` with near names, `path_denied`, `invalid_arguments` where it is no regular file (FI-04),
 * `permission_denied`, `session_unavailable`.
 */
export function openFile(workspace: Workspace, path: string): OpenedFile {
  return opened(workspace, path, (place, node) => {
    if (!node.stat.isFile()) throw notRegular(place.display, node.stat)
    return descend.reopen(place.folder, place.name, node, constants.O_RDONLY)
  })
}

/** A regular file's bytes by the safe walk. @throws KikiError as `openFile`, `too_large`. */
export function readFile(workspace: Workspace, path: string, maxBytes: number): { bytes: Buffer; display: string } {
  const file = openFile(workspace, path)
  try {
    return { bytes: readOpened(file, maxBytes), display: file.display }
  } finally {
    file.close()
  }
}

/** The whole of an open file that was not read by position yet. @throws KikiError `too_large`. */
export function readOpened(file: OpenedFile, maxBytes: number): Buffer {
  const { size } = file.stat
  if (size > BigInt(maxBytes)) {
    throw new KikiError('too_large', `"${file.display}" has ${size} bytes; at most ${maxBytes} are read at once.`, {
      hint: 'Look at a smaller part of it that a command makes.',
      data: { size: Number(size), limit: maxBytes },
    })
  }
  return readFileSync(file.fd)
}

/** Opens a folder for reading by the safe walk. @throws KikiError as `openFile`, `invalid_arguments` for a non-folder. */
export function openDirectory(workspace: Workspace, path: string): OpenedDirectory {
  return opened(workspace, path, (place, node) => {
    if (!node.stat.isDirectory()) throw notFolder(place.display)
    return descend.reopen(place.folder, place.name === '' ? '.' : place.name, node, constants.O_RDONLY)
  })
}

/**
 * Where a path really leads, without opening it: what rules and guards judge. `type` is undefined where nothing is there.
 * @param options.follow false to judge the link itself where the last name is one (Move, Delete).
 */
export function resolvePath(
  workspace: Workspace,
  path: string,
  options?: { follow?: boolean },
): { path: string; display: string; type: NodeType | undefined } {
  const place = walk(workspace, path, options)
  try {
    return { path: place.path, display: place.display, type: place.node && nodeType(place.node.stat) }
  } finally {
    place.close()
  }
}

export interface ChangedFile {
  path: string
  display: string
  before: Buffer | undefined
  after: Buffer
  created: boolean
  /** SHA-256 of `after`, in hex. */
  sha256: string
}

/** The new bytes for what is there; in steps where that may take long. Pure; it refuses by throwing. */
export type Change = (current: Buffer | undefined) => Buffer | Sliced<Buffer>

/** Time, in milliseconds, for which the new bytes are worked out at once; what takes longer is done in slices. */
const AT_ONCE_MS = 20
/** How often new bytes are worked out again because the file changed meanwhile. */
const MAX_ROUNDS = 5

/**
 * Changes one file: reads the whole current content, asks `change` for the new bytes, journals the earlier content, then
 * replaces the file so that it holds the old or the new content whatever happens (FI-06). Content that stays the same is
 * neither written nor recorded. From the read to the rename nothing is awaited, so two changes of one file cannot
 * overlap in this process, and another program's change in between is a `conflict` (FI-15). New bytes that take long are
 * worked out beside that, in slices, and used only where the whole content is read again and still the same.
 * `current` is undefined where no file is there (only with `create`, which also makes missing folders).
 * @throws KikiError as `openFile`, and `conflict`, `too_large` (64 MiB), `cancelled`, `internal_error` (disk full).
 */
export async function changeFile(
  context: ChangeContext,
  path: string,
  change: Change,
  options: { create?: boolean } = {},
): Promise<ChangedFile> {
  let known: Known | undefined
  for (let round = 1; ; round++) {
    if (context.signal.aborted) throw cancelled()
    const done = tryChange(context, path, (current) => startOf(change, current, known), options)
    if ('path' in done) return done
    if (round > MAX_ROUNDS) throw changedMeanwhile(path)
    known = { before: done.before, after: await runInSlices(done.work, context.signal) }
  }
}

/** New bytes, and the content that they were worked out from. */
interface Known {
  before: Buffer | undefined
  after: Buffer
}

/** Work that was not done at once. */
interface Begun {
  before: Buffer | undefined
  work: Sliced<Buffer>
}

function startOf(change: Change, current: Buffer | undefined, known: Known | undefined): Buffer | Begun {
  if (known !== undefined && isSameContent(current, known.before)) return known.after
  const work = change(current)
  if (Buffer.isBuffer(work)) return work
  return runFor(work, AT_ONCE_MS)?.value ?? { before: current, work }
}

function isSameContent(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === undefined || b === undefined ? a === b : a.equals(b)
}

/** Everything from the walk to the rename, or to where the new bytes take longer. */
function tryChange(
  context: ChangeContext,
  path: string,
  start: (current: Buffer | undefined) => Buffer | Begun,
  options: { create?: boolean },
): ChangedFile | Begun {
  const place = walk(context.workspace, path)
  try {
    if (place.node === undefined) {
      if (options.create !== true) throw missing(context.workspace, path, place.folder, place.missing[0] ?? path)
      if (/[\\/]\.?$/.test(path)) throw namesFolder(path)
      const after = start(undefined)
      return Buffer.isBuffer(after) ? createFile(context, place, after) : after
    }
    const before = readExisting(place, place.node)
    const after = start(before)
    return Buffer.isBuffer(after) ? replaceExisting(context, place, place.node, { before, after }) : after
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/** The content of a file that a walk found and that may be changed. */
export function readExisting(place: Place, node: Node): Buffer {
  if (!node.stat.isFile()) throw notRegular(place.display, node.stat)
  requireWritable(place, node)
  return readWhole(place, node, MAX_CHANGE_BYTES)
}

/**
 * The second half of `changeFile`, for a file that a walk found and `readExisting` read in the same turn.
 * @param change.mode permission bits that the file gets; those that it has without it.
 */
export function replaceExisting(
  context: Omit<ChangeContext, 'signal'>,
  place: Place,
  node: Node,
  { before, after, mode }: { before: Buffer; after: Buffer; mode?: number | undefined },
): ChangedFile {
  const changed = { path: place.path, display: place.display, before, after, created: false, sha256: sha256(after) }
  const afterMode = mode === Number(node.stat.mode & 0o7777n) ? undefined : mode
  if (after.equals(before) && afterMode === undefined) return changed
  requireSize(place.display, after)
  const { locks } = context.workspace.fence
  const unlock = locks === undefined ? () => {} : lockForChange(locks, identityOf(node.stat))
  if (unlock === undefined) throw changedMeanwhile(place.display)
  try {
    write(context, place, node, changed, afterMode)
  } finally {
    unlock()
  }
  return changed
}

/** Keeps the earlier content, then puts the later one in its place. */
function write(
  { journal }: Pick<ChangeContext, 'journal'>,
  target: Target & { path: string },
  node: Node,
  { before = Buffer.alloc(0), after, sha256: afterSha256 }: ChangedFile,
  afterMode: number | undefined,
): void {
  const onlyMode = after.equals(before)
  const inPlace = node.stat.nlink > 1n && !onlyMode
  const temporary = temporaryName()
  journal.record(
    {
      kind: 'modify',
      path: target.path,
      mode: Number(node.stat.mode & 0o7777n),
      beforeSha256: sha256(before),
      afterSha256,
      identity: identityOf(node.stat),
      ...(afterMode === undefined ? {} : { afterMode }),
      ...(inPlace ? { inPlace } : onlyMode ? {} : { temporary }),
    },
    before,
  )
  if (inPlace) overwrite(target, after, node)
  if (afterMode !== undefined && (inPlace || onlyMode)) changeMode(target, node, afterMode, onlyMode)
  else if (!inPlace) replace(target, after, node, temporary, afterMode)
}

/** Makes a file that a walk found missing, and the missing folders above it. @param executable for a program. */
export function createFile(
  context: Omit<ChangeContext, 'signal'>,
  place: Place,
  after: Buffer,
  executable = false,
): ChangedFile {
  requireSize(place.display, after)
  const name = place.missing.at(-1) ?? place.name
  const folders = holdMissing(context, place.folder, place.missing.slice(0, -1))
  try {
    const temporary = temporaryName()
    const changed = {
      path: place.path,
      display: place.display,
      before: undefined,
      after,
      created: true,
      sha256: sha256(after),
    }
    context.journal.record({ kind: 'create', path: place.path, afterSha256: changed.sha256, temporary })
    const target = { folder: folders.last, name, display: place.display }
    replace(target, after, undefined, temporary, executable ? 'executable' : undefined)
    return changed
  } catch (error) {
    folders.remove()
    throw error
  } finally {
    folders.close()
  }
}

function opened(workspace: Workspace, path: string, open: (place: Place, node: Node) => number): OpenedFile {
  const place = walk(workspace, path)
  try {
    if (place.node === undefined) throw missing(workspace, path, place.folder, place.missing[0] ?? path)
    const fd = open(place, place.node)
    return { fd, stat: place.node.stat, path: place.path, display: place.display, close: () => closeSync(fd) }
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/** `device:inode`, as the journal keeps it. */
export function identityOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`
}

function requireSize(display: string, bytes: Buffer): void {
  if (bytes.length > MAX_CHANGE_BYTES) throw tooLarge(display, BigInt(bytes.length), MAX_CHANGE_BYTES)
}

/** The refusal of a new file under a name that ends like a folder's. */
export function namesFolder(path: string): KikiError {
  return new KikiError('invalid_arguments', `"${path}" names a folder, not a file.`, {
    hint: 'Leave out the last "/", or use MakeDirectory.',
  })
}

import { KikiError } from '../lib/errors.js'
import type { Sliced } from '../lib/slices.js'
import { encode } from './encoding.js'
import { MAX_CHANGE_BYTES, namesFolder } from './files.js'
import { MAX_KEPT_BYTES, sha256 } from './journal.js'
import { createPatchFiles, expectationOf, type PatchFile, type PatchFiles, type Slot } from './patch-files.js'
import type { PatchSection } from './patch-format.js'
import { type AppliedHunk, applyHunks, contentOf } from './patch-hunks.js'
import type { Workspace } from './workspace.js'
import { tooLarge } from './write.js'

/** What a section comes to, in the words of its file. */
export interface PlannedFile {
  did: 'created' | 'edited' | 'deleted' | 'moved'
  /** As shown to the client; of a moved file its new place. */
  display: string
  from?: string
  before: Buffer | undefined
  /** Undefined for what is deleted, and where only the name changes. */
  after: Buffer | undefined
  /** Of the content afterwards, where that was read. */
  sha256?: string
  executable?: boolean
  applied: readonly AppliedHunk[]
}

type Expected = ReturnType<typeof expectationOf>

/** One change on disk; paths are real, and `section` is what to call it in messages. */
export type PatchStep = { section: string; path: string } & (
  | { act: 'create'; after: Buffer; executable: boolean }
  | { act: 'write'; expect: Expected; before: Buffer; after: Buffer; mode: number | undefined }
  | { act: 'remove'; expect: Expected }
  | { act: 'move'; to: string; expect: Expected }
)

export interface PatchPlan {
  files: PlannedFile[]
  steps: PatchStep[]
}

interface Planning extends PatchPlan {
  known: PatchFiles
  /** Bytes that the steps will keep, and that taking them back would. */
  kept: number
}

/**
 * Works out everything that a patch does, section after section, each on what the ones before left; nothing is changed on disk
 * (FI-10).
 * @throws KikiError with the file, and where one is at fault the hunk, named; `too_large` where more than 256 MiB would have to be
 * kept for undo
 */
export function* planPatch(workspace: Workspace, sections: readonly PatchSection[]): Sliced<PatchPlan> {
  const planning: Planning = { files: [], steps: [], known: createPatchFiles(workspace), kept: 0 }
  for (const section of sections) {
    yield
    try {
      if (section.act === 'add') yield* planAdded(planning, section)
      else if (section.act === 'delete') planDeleted(planning, section)
      else yield* planUpdated(planning, section)
    } catch (error) {
      throw error instanceof KikiError ? named(error, section) : error
    }
    if (planning.kept > MAX_KEPT_BYTES) throw tooMuch()
  }
  return { files: planning.files, steps: planning.steps }
}

function* planAdded(planning: Planning, section: PatchSection): Sliced<void> {
  const { known } = planning
  const slot = free(known, section.path)
  const source = section.copyOf === undefined ? undefined : known.original(section.copyOf)
  const begin = source?.bytes
  const copied = begin && section.hunks.length > 0 ? yield* applyHunks(begin, section.hunks, slot.display) : undefined
  const after = copied?.bytes ?? begin ?? contentOf(section.hunks[0])
  if (after.length > MAX_CHANGE_BYTES) throw tooLarge(slot.display, BigInt(after.length), MAX_CHANGE_BYTES)
  const executable = section.executable ?? (source !== undefined && (source.mode & 0o100) !== 0)
  planning.kept += after.length
  planning.steps.push({ section: slot.display, act: 'create', path: slot.path, after, executable })
  planning.files.push({
    ...{ did: 'created', display: slot.display, before: undefined, after, sha256: sha256(after) },
    ...(executable ? { executable } : {}),
    applied: copied?.applied ?? [],
  })
  const base = { type: 'file', onDisk: undefined, identity: '', size: after.length } as const
  known.set(slot, { ...base, mode: executable ? 0o755 : 0o644, bytes: after, changed: true })
}

function planDeleted(planning: Planning, section: PatchSection): void {
  const { known } = planning
  const slot = existing(known, section.path)
  const { file } = slot
  let before: Buffer | undefined
  if (section.showsContent) {
    if (file.type === 'link') throw isLink(slot.display)
    before = known.bytesOf(slot)
    const shown = contentOf(section.hunks[0])
    if (!isSameText(before, shown)) throw otherContent(slot.display)
  }
  planning.kept += file.size
  planning.steps.push({ section: slot.display, act: 'remove', path: slot.path, expect: expectationOf(file) })
  planning.files.push({ did: 'deleted', display: slot.display, before, after: undefined, applied: [] })
  known.set(slot, undefined)
}

function* planUpdated(planning: Planning, section: PatchSection): Sliced<void> {
  const { known } = planning
  const moves = section.to !== undefined
  const slot = moves ? existing(known, section.path) : known.target(section.path)
  const goal = section.to === undefined ? undefined : goalOf(known, slot, section.to)
  const changes = section.hunks.length > 0 || section.executable !== undefined
  if (changes && slot.file.type === 'link') throw isLink(slot.display)
  const before = changes ? known.bytesOf(moves ? known.target(section.path) : slot) : slot.file.bytes
  const done = before && section.hunks.length > 0 ? yield* applyHunks(before, section.hunks, slot.display) : undefined
  const after = done?.bytes ?? before
  const mode = modeAfter(slot.file, section.executable)
  const writes = before !== undefined && after !== undefined && !(before.equals(after) && mode === undefined)
  if (!writes && goal === undefined) throw changesNothing(slot.display, section)
  if (writes) {
    const expect = expectationOf(slot.file)
    planning.steps.push({ section: slot.display, act: 'write', path: slot.path, expect, before, after, mode })
    planning.kept += before.length + after.length
    Object.assign(slot.file, { bytes: after, size: after.length, mode: mode ?? slot.file.mode, changed: true })
  }
  known.set(slot, slot.file)
  if (goal !== undefined) {
    const expect = expectationOf(slot.file)
    planning.steps.push({ section: slot.display, act: 'move', path: slot.path, to: goal.path, expect })
    known.set(slot, undefined)
    known.set(goal, slot.file)
  }
  planning.files.push({
    did: goal === undefined ? 'edited' : 'moved',
    display: goal?.display ?? slot.display,
    ...(goal === undefined ? {} : { from: slot.display }),
    before: writes ? before : undefined,
    after: writes ? after : undefined,
    ...(after === undefined ? {} : { sha256: sha256(after) }),
    ...(mode === undefined ? {} : { executable: (mode & 0o100) !== 0 }),
    applied: done?.applied ?? [],
  })
}

/** As git: who may read may run. Undefined where it is so already. */
function modeAfter({ mode }: PatchFile, executable: boolean | undefined): number | undefined {
  if (executable === undefined || executable === ((mode & 0o100) !== 0)) return undefined
  return executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111
}

/** Line ends and white space at line ends may differ: the patch may have been sent without them. */
function isSameText(bytes: Buffer, shown: Buffer): boolean {
  const plain = (text: Buffer) =>
    text
      .toString('latin1')
      .replace(/[ \t]*\r?\n/g, '\n')
      .replace(/\n$/, '')
  const bare = bytes.subarray(0, 3).equals(encode('\ufeff', 'utf-8')) ? bytes.subarray(3) : bytes
  return bytes.equals(shown) || plain(bytes) === plain(shown) || plain(bare) === plain(shown)
}

function existing(known: PatchFiles, path: string): Slot & { file: PatchFile } {
  const slot = known.entry(path)
  const { file } = slot
  // What is missing is said by the one that looks for a file to change.
  return file === undefined ? known.target(path) : { ...slot, file }
}

function free(known: PatchFiles, path: string): Slot {
  if (/[\\/]\.?$/.test(path)) throw namesFolder(path)
  const slot = known.entry(path)
  if (slot.file !== undefined) throw taken(slot.display)
  known.requireRoom(slot)
  return slot
}

/** Undefined where it is the very name that the file has. */
function goalOf(known: PatchFiles, slot: Slot, to: string): Slot | undefined {
  const goal = known.entry(to)
  if (goal.path === slot.path) return undefined
  const empty = free(known, to)
  if (empty.device === slot.device) return empty
  throw new KikiError('invalid_arguments', `"${empty.display}" is on another file system.`, {
    hint: 'Add it there as a new file and delete the old one.',
    data: { path: empty.display },
  })
}

function taken(display: string): KikiError {
  return new KikiError('conflict', `"${display}" exists already, there or by this patch.`, {
    hint: 'Use an update of it, or delete or move it in a section before this one.',
    data: { path: display },
  })
}

function isLink(display: string): KikiError {
  return new KikiError(
    'invalid_arguments',
    `"${display}" is a symbolic link; a patch of its content is not applied to it.`,
    {
      hint: 'Name the file that it points to; *** Delete File: deletes the link itself.',
      data: { path: display },
    },
  )
}

function otherContent(display: string): KikiError {
  return new KikiError('conflict', `"${display}" does not hold what the patch deletes.`, {
    hint: 'Read it again; Delete or *** Delete File: delete it whatever it holds.',
    data: { path: display },
  })
}

function changesNothing(display: string, { hunks }: PatchSection): KikiError {
  const why = hunks.length > 0 ? 'its hunks leave the file as it is' : 'its mode is so already'
  return new KikiError('invalid_arguments', `"${display}" would not change: ${why}.`, {
    hint: 'Leave the file out of the patch.',
    data: { path: display },
  })
}

function tooMuch(): KikiError {
  return new KikiError(
    'too_large',
    'The patch would change more than can be kept to be undone (256 MiB). Nothing was changed.',
    {
      hint: 'Send it in several parts.',
    },
  )
}

/** Says which file, and that nothing was changed, where the message does not yet. */
function named(error: KikiError, { path, at }: PatchSection): KikiError {
  const says = error.message.includes('Nothing was changed') ? error.message : `${error.message} Nothing was changed.`
  return new KikiError(error.code, error.data?.hunk === undefined ? `In the section of ${path}: ${says}` : says, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    data: { patch_line: at, path, ...error.data },
    cause: error,
  })
}

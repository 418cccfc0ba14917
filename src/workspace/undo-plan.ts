import { dirname } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { createPace } from '../lib/slices.js'
import { cancelled } from './errors.js'
import { type Found, find, namesIn } from './found.js'
import { type ChangeRecord, MAX_KEPT_BYTES } from './journal.js'
import { shownPath } from './list.js'
import { indexNames, nameKey } from './name-index.js'
import { createVirtualTree, type VirtualTree } from './virtual-tree.js'
import type { Workspace } from './workspace.js'

/** A recorded change, with the operation that made it. */
export interface PastChange {
  operationId: string
  record: ChangeRecord
}

/** What takes one change back. `expect` is what must stand there when the step is carried out. */
export interface UndoStep extends PastChange {
  act: 'write' | 'remove' | 'make' | 'move'
  path: string
  expect: (Pick<Found, 'type' | 'sha256' | 'identity'> & { mode?: number }) | undefined
  /** Another name of the deleted file, which the restored one is to share. */
  linkTo?: string
  /** For the reader: what is not quite as it was. */
  note?: string
}

/** Why a change cannot be taken back. */
export interface UndoConflict extends PastChange {
  path: string
  says: string
  /** What is there now. */
  found: Found | undefined
}

export interface UndoPlan {
  steps: UndoStep[]
  conflicts: UndoConflict[]
  /** Changes that are as before already: never done, or taken back since. */
  asBefore: PastChange[]
  /** Made folders that hold something now, and therefore stay. */
  kept: PastChange[]
}

interface Planning {
  tree: VirtualTree
  plan: UndoPlan
  /** What a file or folder of then is now, by its `device:inode` of then: undo makes them anew. */
  reborn: Map<string, Found>
  /** Folders that Kiki itself made again later, by path. */
  remade: ReadonlySet<string>
  otherName(identity: string, born: string): Promise<Found | undefined>
}

export interface PlanInput {
  workspace: Workspace
  signal: AbortSignal
  /** Newest first. */
  changes: readonly PastChange[]
  /** Paths of folders that undo made again, whose identity is not the recorded one. */
  remade: ReadonlySet<string>
  /** Reads what a change kept; throws where it is lost. */
  content(change: PastChange): Buffer | undefined
}

/**
 * What taking changes back, newest first, would do; nothing is changed. Every change is compared with what is there now,
 * because a record says only that its change was about to begin (FI-14).
 * @throws KikiError `too_large` where undo would have to keep more than 256 MiB itself, `internal_error` for lost
 * content, `cancelled`, and as the walk.
 */
export async function planUndo(input: PlanInput): Promise<UndoPlan> {
  const { workspace, signal } = input
  const tree = createVirtualTree({
    find: (path) => find(workspace, path),
    namesIn: (path) => namesIn(workspace, path),
  })
  let names: Promise<Map<string, string[]>> | undefined
  const planning: Planning = {
    tree,
    plan: { steps: [], conflicts: [], asBefore: [], kept: [] },
    reborn: new Map(),
    remade: input.remade,
    async otherName(identity, born) {
      names ??= indexNames(workspace, signal)
      const paths = (await names).get(nameKey(identity, born)) ?? []
      return paths.map((path) => tree.onDisk(path)).find((found) => found !== undefined)
    },
  }
  let keeps = 0
  const pause = createPace()
  for (const change of input.changes) {
    await pause()
    if (signal.aborted) throw cancelled()
    const before = planning.plan.steps.length
    keeps += await planOne(planning, change)
    const step = planning.plan.steps[before]
    if (step !== undefined && needsContent(step) && input.content(change) === undefined) throw lost(change)
    if (keeps > MAX_KEPT_BYTES) throw tooMuch()
  }
  return planning.plan
}

/** Whether a step puts kept bytes back. */
export function needsContent({ act, record }: UndoStep): boolean {
  return act === 'write' || (act === 'make' && record.node !== 'directory')
}

/** @returns the bytes that the step will keep itself. */
async function planOne(planning: Planning, change: PastChange): Promise<number> {
  switch (change.record.kind) {
    case 'create':
      return planCreated(planning, change)
    case 'modify':
      return planModified(planning, change)
    case 'delete':
      await planDeleted(planning, change)
      return 0
    case 'mkdir':
      planFolder(planning, change)
      return 0
    case 'move':
      planMoved(planning, change)
      return 0
  }
}

function planCreated({ tree, plan }: Planning, change: PastChange): number {
  const { path, node, afterSha256 } = change.record
  const found = tree.at(path)
  if (found === undefined) {
    plan.asBefore.push(change)
    return 0
  }
  if (!isContent(found, node ?? 'file', afterSha256)) {
    refuse(plan, change, path, found, 'it is not what was made any more')
    return 0
  }
  addStep(plan, change, 'remove', path, found)
  tree.set(path, undefined)
  return found.size
}

function planModified({ tree, plan, reborn }: Planning, change: PastChange): number {
  const { path, beforeSha256, afterSha256, afterMode, mode, identity, inPlace } = change.record
  const found = tree.at(path)
  const isBefore = found !== undefined && isContent(found, 'file', beforeSha256) && hasMode(found, afterMode, [mode])
  // Content and mode of a file with other names are changed one after the other: a crash may have come between.
  const isAfter =
    found !== undefined &&
    !isBefore &&
    isContent(found, 'file', afterSha256) &&
    hasMode(found, afterMode, [mode, afterMode])
  if (!isAfter && !isBefore) {
    const says = found === undefined ? 'it is not there any more' : 'it was changed since'
    refuse(plan, change, path, found, says)
    return 0
  }
  const alone = inPlace === true && found.identity !== identity && reborn.get(identity ?? '') !== found
  if (!isAfter) plan.asBefore.push(change)
  else {
    const note = 'it had other names (hard links) then, which may still hold the later content'
    addStep(plan, change, 'write', path, found, alone ? { note } : {})
    found.sha256 = beforeSha256
    if (afterMode !== undefined) found.mode = mode ?? found.mode
  }
  if (identity !== undefined && !alone) reborn.set(identity, found)
  return isAfter ? found.size : 0
}

async function planDeleted(planning: Planning, change: PastChange): Promise<void> {
  const { tree, plan, reborn } = planning
  const { path, node, beforeSha256, identity = '', shared } = change.record
  const type = node ?? 'file'
  const found = tree.at(path)
  if (found !== undefined) {
    const same = type === 'directory' ? found.type === 'directory' : isContent(found, type, beforeSha256)
    if (!same) return refuse(plan, change, path, found, 'something else is there now')
    reborn.set(identity, found)
    plan.asBefore.push(change)
    return
  }
  if (tree.at(dirname(path))?.type !== 'directory') {
    return refuse(plan, change, path, undefined, 'the folder that it was in is not there')
  }
  const file = shared === undefined ? undefined : await sharedFile(planning, change.record)
  const linkTo = file && tree.nameOf(file)
  const alone = shared !== undefined && linkTo === undefined
  const note = 'it had other names (hard links), and is a file of its own now'
  addStep(plan, change, 'make', path, undefined, {
    ...(linkTo === undefined ? {} : { linkTo }),
    ...(alone ? { note } : {}),
  })
  const made: Found = (linkTo !== undefined && file) || {
    type,
    identity: '',
    size: change.record.size ?? 0,
    links: 1,
    mode: change.record.mode ?? 0,
    ...(beforeSha256 === undefined ? {} : { sha256: beforeSha256 }),
  }
  tree.set(path, made)
  reborn.set(identity, made)
}

/** The file of which the deleted name was another one, if it still is what it was then. */
async function sharedFile(
  { reborn, otherName }: Planning,
  { identity = '', shared = '', beforeSha256 }: ChangeRecord,
): Promise<Found | undefined> {
  const found = reborn.get(identity) ?? (await otherName(identity, shared))
  return found !== undefined && isContent(found, 'file', beforeSha256) ? found : undefined
}

function planFolder({ tree, plan }: Planning, change: PastChange): void {
  const { path } = change.record
  const found = tree.at(path)
  if (found === undefined) plan.asBefore.push(change)
  else if (found.type !== 'directory') refuse(plan, change, path, found, 'it is not a folder any more')
  else if (!tree.isEmpty(path)) plan.kept.push(change)
  else {
    addStep(plan, change, 'remove', path, found)
    tree.set(path, undefined)
  }
}

function planMoved(planning: Planning, change: PastChange): void {
  const { tree, plan } = planning
  const { path, to = '' } = change.record
  const source = tree.at(to)
  const goal = tree.at(path)
  const moved = source !== undefined && isMoved(planning, change.record, source)
  const back = goal !== undefined && isMoved(planning, change.record, goal)
  // The same content at both places is no proof; the very file is.
  if (back && (!moved || goal.identity === change.record.identity)) plan.asBefore.push(change)
  else if (source === undefined) refuse(plan, change, to, undefined, 'what was moved there is gone')
  else if (!moved) refuse(plan, change, to, source, 'it is not what was moved there any more')
  else if (goal !== undefined) refuse(plan, change, path, goal, 'something else is there now')
  else if (tree.at(dirname(path))?.type !== 'directory') {
    refuse(plan, change, path, undefined, 'the folder that it was in is not there')
  } else {
    addStep(plan, change, 'move', path, source)
    tree.move(to, path)
  }
}

function isMoved({ reborn, remade }: Planning, record: ChangeRecord, found: Found): boolean {
  const { node = 'file', identity = '', beforeSha256, to = '' } = record
  if (found.type !== node) return false
  if (beforeSha256 !== undefined) return found.sha256 === beforeSha256
  return found.identity === identity || reborn.get(identity) === found || (node === 'directory' && remade.has(to))
}

/** Only a change of the mode asks for one. */
function hasMode(found: Found, afterMode: number | undefined, modes: readonly (number | undefined)[]): boolean {
  return afterMode === undefined || modes.includes(found.mode)
}

function isContent(found: Found, type: Found['type'], sha256: string | undefined): boolean {
  return found.type === type && found.sha256 !== undefined && found.sha256 === sha256
}

function addStep(
  plan: UndoPlan,
  change: PastChange,
  act: UndoStep['act'],
  path: string,
  found: Found | undefined,
  more: Pick<UndoStep, 'linkTo' | 'note'> = {},
): void {
  const mode = change.record.afterMode === undefined ? undefined : found?.mode
  const expect = found && {
    ...{ type: found.type, sha256: found.sha256, identity: found.identity },
    ...(mode === undefined ? {} : { mode }),
  }
  plan.steps.push({ ...change, act, path, expect, ...more })
}

function refuse(plan: UndoPlan, change: PastChange, path: string, found: Found | undefined, says: string): void {
  plan.conflicts.push({ ...change, path, says, found })
}

function lost({ operationId, record }: PastChange): KikiError {
  return new KikiError(
    'internal_error',
    `The earlier content of "${shownPath(record.path)}" (${operationId}) is not kept.`,
    {
      hint: 'This change cannot be undone; nothing was changed.',
    },
  )
}

function tooMuch(): KikiError {
  return new KikiError('too_large', 'Undoing this would replace more than 256 MiB at once; nothing was changed.', {
    hint: 'Undo operation by operation, the newest first.',
  })
}

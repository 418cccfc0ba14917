import { closeSync, constants, linkSync, mkdirSync, symlinkSync } from 'node:fs'
import { descend, type Node } from './descend.js'
import { changedMeanwhile, fileError } from './errors.js'
import { type ChangeContext, readExisting, replaceExisting } from './files.js'
import { foundAt } from './found.js'
import { type ChangeRecord, type Journal, sha256, syncFolder } from './journal.js'
import { moveFile } from './move.js'
import { removeNode, requireRemovable } from './remove.js'
import type { UndoStep } from './undo-plan.js'
import { type Place, walk } from './walk.js'
import { confirm, type Rights, replace, setRights, temporaryName } from './write.js'

/**
 * Carries one step of an undo out. What is there is compared once more, and from there to the change nothing is awaited;
 * the step is itself a recorded change, so that it can be undone too (FI-14).
 * @param content the kept bytes, for a step that puts some back.
 * @throws KikiError as the walk, and `conflict` where something else is there since the plan was made.
 */
export async function applyStep(context: ChangeContext, step: UndoStep, content: Buffer | undefined): Promise<void> {
  const { workspace } = context
  const undoes = { operationId: step.operationId, seq: step.record.seq }
  const journal = tagged(context.journal, undoes)
  if (step.act === 'move') {
    const from = step.record.to ?? ''
    at({ ...context, path: from }, (place, node) => expected(place, node, step))
    await moveFile({ ...context, journal }, from, step.path)
    return
  }
  at({ ...context, path: step.path }, (place, node) => {
    expected(place, node, step)
    if (step.act === 'make') make({ workspace, journal, place }, step, content)
    else if (node === undefined) throw changedMeanwhile(place.display)
    else if (step.act === 'remove') remove({ workspace, journal, place }, node)
    else {
      const before = readExisting(place, node)
      const mode = step.record.afterMode === undefined ? undefined : step.record.mode
      replaceExisting({ workspace, journal }, place, node, { before, after: kept(content), mode })
    }
  })
}

interface Spot extends Pick<ChangeContext, 'workspace' | 'journal'> {
  place: Place
}

/** Each of its changes names the one that it takes back. */
function tagged(journal: Journal, undoes: ChangeRecord['undoes'] & object): Journal {
  return {
    record: (change, before) => journal.record({ ...change, undoes }, before),
    records: journal.records,
  }
}

/** Walks to exactly this real path and acts there in the same turn. */
export function at(
  { workspace, path }: { workspace: ChangeContext['workspace']; path: string },
  act: (place: Place, node: Node | undefined) => void,
): void {
  const place = walk(workspace, path, { follow: false })
  try {
    if (place.path !== path) throw changedMeanwhile(place.display)
    act(place, place.node)
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

function expected(place: Place, node: Node | undefined, { expect }: UndoStep): void {
  if (node === undefined && expect === undefined && place.missing.length === 1) return
  const found = node && foundAt(place, node)
  const same =
    found !== undefined &&
    found.type === expect?.type &&
    found.sha256 === expect.sha256 &&
    (expect.mode ?? found.mode) === found.mode
  if (!same) throw changedMeanwhile(place.display)
}

function remove({ workspace, journal, place }: Spot, node: Node): void {
  if (node.stat.isDirectory()) requireRemovable(workspace, place, node)
  removeNode(journal, place, node)
  syncFolder(descend.at(place.folder, '.'))
}

function make(spot: Spot, step: UndoStep, content: Buffer | undefined): void {
  const { journal, place } = spot
  const { record, linkTo } = step
  const target = { folder: place.folder, name: place.missing[0] ?? '', display: place.display }
  if (record.node === 'directory') {
    makeFolder(spot, record)
    return
  }
  const base = { kind: 'create', path: place.path, afterSha256: sha256(kept(content)) } as const
  if (record.node === 'link') {
    journal.record({ ...base, node: 'link' })
    confirm(target, undefined)
    symlinkSync(kept(content), descend.at(place.folder, target.name))
  } else if (linkTo !== undefined) {
    journal.record(base)
    confirm(target, undefined)
    linkAgain(spot, linkTo, base.afterSha256)
  } else {
    const temporary = temporaryName()
    journal.record({ ...base, temporary })
    replace(target, kept(content), undefined, temporary, rightsOf(record))
  }
  syncFolder(descend.at(place.folder, '.'))
}

/** Makes the missing name one of a file that is there by another name. */
function linkAgain({ workspace, place }: Spot, other: string, wanted: string): void {
  at({ workspace, path: other }, (source, node) => {
    if (node === undefined || foundAt(source, node).sha256 !== wanted) throw changedMeanwhile(source.display)
    linkSync(descend.at(source.folder, source.name), descend.at(place.folder, place.missing[0] ?? ''))
  })
}

function makeFolder({ journal, place }: Spot, record: ChangeRecord): void {
  const name = place.missing[0] ?? ''
  if (!descend.stillThere(place.folder)) throw changedMeanwhile(place.display)
  journal.record({ kind: 'mkdir', path: place.path })
  mkdirSync(descend.at(place.folder, name), { mode: 0o700 })
  const node = descend.openNode(place.folder, name)
  if (node?.fd === undefined || !node.stat.isDirectory()) throw changedMeanwhile(place.display)
  try {
    const fd = descend.reopen(place.folder, name, node, constants.O_RDONLY)
    try {
      setRights(fd, rightsOf(record))
    } finally {
      closeSync(fd)
    }
  } finally {
    closeSync(node.fd)
  }
  syncFolder(descend.at(place.folder, '.'))
}

/** Records of Kiki before owners were kept get what the file system gives, and no set-id bits. */
function rightsOf({ mode = 0o600, owner }: ChangeRecord): Rights {
  const [uid = -1, gid = -1] = owner?.split(':').map(Number) ?? []
  return { uid, gid, mode: owner === undefined ? mode & 0o1777 : mode }
}

function kept(content: Buffer | undefined): Buffer {
  if (content === undefined) throw new Error('a step that puts content back is given some')
  return content
}

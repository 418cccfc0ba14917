import { diffOf } from '../workspace/diff-files.js'
import { find } from '../workspace/found.js'
import type { ChangeRecord } from '../workspace/journal.js'
import { displayOf } from '../workspace/paths.js'
import type { PastChange } from '../workspace/undo-plan.js'
import { walk } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { readWhole } from '../workspace/write.js'
import type { ChangedOperation, SessionChanges } from './changes.js'

/** What a change did to content, as far as it is known; nothing is guessed. */
export interface ChangeDiff {
  /** Bounded unified diff; empty where there is none to show. */
  diff: string
  /** Why there is none, or what it leaves out. */
  note?: string
}

export interface DiffSource {
  workspace: Workspace
  changes: Pick<SessionChanges, 'content'>
  /** Operations from that of the change on, newest first, without a gap. */
  operations: readonly ChangedOperation[]
}

/** Files that are read to be shown, in bytes. */
const MAX_SHOWN_BYTES = 64 * 1024 * 1024

/**
 * The difference that one change made (FI-14): the earlier content is kept, the later one is what a later change kept or
 * what is there now, provided that its hash is the recorded one.
 * @param maxChars characters of the diff.
 * @throws KikiError where the kept content is lost or damaged.
 */
export function diffOfChange(source: DiffSource, change: PastChange, maxChars: number): ChangeDiff {
  const { record } = change
  const { kind, node } = record
  if (kind === 'mkdir' || kind === 'move' || node === 'directory') return { diff: '' }
  const refusal = source.workspace.refuses?.(record.path)
  if (refusal !== undefined) return { diff: '', note: refusal.message }
  const before = source.changes.content(change.operationId, record.seq)
  const after = kind === 'delete' ? undefined : laterContent(source, change)
  if (kind !== 'delete' && after === undefined) {
    return { diff: '', note: 'The content that this change left is not kept: it was changed since by something else.' }
  }
  const display = displayOf(source.workspace, record.path)
  const diff = diffOf({ before, after: after ?? Buffer.alloc(0), display, maxChars })
  return diff === '' ? { diff, note: sizes(before, after) } : { diff }
}

/** What a change left behind, found by its hash; undefined where it is not kept any more. */
export function laterContent({ workspace, changes, operations }: DiffSource, change: PastChange): Buffer | undefined {
  const wanted = change.record.afterSha256
  const later = laterThan(operations, change)
  const keeper = later.find(({ record }) => record.size !== undefined && record.beforeSha256 === wanted)
  if (keeper !== undefined) return changes.content(keeper.operationId, keeper.record.seq)
  const path = whereNow(change.record.path, later)
  return wanted === undefined ? undefined : currentContent(workspace, path, wanted)
}

/** Bytes of the file or link target at a path, if they have this hash; undefined otherwise and where nothing is there. */
export function currentContent(workspace: Workspace, path: string, wanted?: string): Buffer | undefined {
  const found = find(workspace, path)
  if (found?.type !== 'file' || found.size > MAX_SHOWN_BYTES) return undefined
  if (wanted !== undefined && found.sha256 !== wanted) return undefined
  const place = walk(workspace, path, { follow: false })
  try {
    return place.node?.stat.isFile() === true ? readWhole(place, place.node, MAX_SHOWN_BYTES) : undefined
  } finally {
    place.close()
  }
}

/** Changes after one, oldest first. */
function laterThan(operations: readonly ChangedOperation[], change: PastChange): PastChange[] {
  const all = operations
    .toReversed()
    .flatMap(({ id, changes }) => changes.map((record) => ({ operationId: id, record })))
  const own = all.findIndex(
    ({ operationId, record }) => operationId === change.operationId && record.seq === change.record.seq,
  )
  return all.slice(own + 1)
}

/** Where later moves took what was at a path. */
function whereNow(path: string, later: readonly PastChange[]): string {
  return later.reduce((at, { record }) => movedBy(record, at) ?? at, path)
}

/** Where one move took what was at a path; undefined where it did not. */
export function movedBy({ kind, path, to }: ChangeRecord, at: string): string | undefined {
  if (kind !== 'move' || to === undefined) return undefined
  return at === path || at.startsWith(`${path}/`) ? to + at.slice(path.length) : undefined
}

function sizes(before: Buffer | undefined, after: Buffer | undefined): string {
  const say = (bytes: Buffer | undefined) => (bytes === undefined ? 'nothing' : `${bytes.length} bytes`)
  return `No text difference to show: ${say(before)} became ${say(after)}.`
}

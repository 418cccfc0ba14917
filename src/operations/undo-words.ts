import { KikiError } from '../lib/errors.js'
import { diffOf } from '../workspace/diff-files.js'
import { shownPath } from '../workspace/list.js'
import { displayOf } from '../workspace/paths.js'
import type { UndoConflict, UndoPlan, UndoStep } from '../workspace/undo-plan.js'
import type { Workspace } from '../workspace/workspace.js'
import { currentContent, type DiffSource, laterContent } from './change-content.js'
import { type ChangedOperation, type SessionChanges, standing } from './changes.js'

/** Conflicts that are told with their difference; of the others only the number. */
const SHOWN = 5
const DIFF_CHARS = 1500

/** One step in words, paths as the client sees them. */
export function stepWords(workspace: Workspace, { act, path, record, linkTo, note }: UndoStep): string {
  const name = named(workspace, path)
  const more = note === undefined ? '' : ` (${note})`
  switch (act) {
    case 'write':
      return `restored ${name}${more}`
    case 'remove':
      return `removed ${name}`
    case 'make':
      if (linkTo !== undefined) return `brought back ${name} as a name of ${named(workspace, linkTo)}`
      return `brought back ${name}${record.node === 'directory' ? '/' : ''}${more}`
    case 'move':
      return `moved ${named(workspace, record.to ?? '')} back to ${name}`
  }
}

/** One line, whatever characters its names hold. */
function named(workspace: Workspace, path: string): string {
  return shownPath(displayOf(workspace, path))
}

/** The refusal of the whole, with the differences that stand against it. */
export function conflictError(
  context: { workspace: Workspace; changes: SessionChanges },
  operations: readonly ChangedOperation[],
  { conflicts, steps }: UndoPlan,
): KikiError {
  const source = { ...context, operations }
  const shown = conflicts.slice(0, SHOWN).map((conflict) => conflictWords(source, conflict))
  const more = conflicts.length > SHOWN ? `\nand ${conflicts.length - SHOWN} more.` : ''
  const of = `${conflicts.length} of ${conflicts.length + steps.length} changes`
  const later = [...new Set(conflicts.flatMap((conflict) => changedLater(operations, conflict)))]
  return new KikiError(
    'conflict',
    `Nothing was undone, because ${of} cannot be taken back:\n${shown.join('\n')}${more}`,
    {
      hint:
        later.length === 0
          ? 'Something outside this session made the change: edit the file by hand, or keep it.'
          : `Later calls of this session changed it: undo ${later[0]} first, or all since ${conflicts.at(-1)?.operationId}.`,
      data: {
        conflicts: conflicts.slice(0, 50).map(({ operationId, record, path, says }) => ({
          operation_id: operationId,
          seq: record.seq,
          path: displayOf(context.workspace, path),
          reason: says,
        })),
        ...(later.length === 0 ? {} : { changed_by: later.slice(0, 20) }),
      },
    },
  )
}

function conflictWords(source: DiffSource, conflict: UndoConflict): string {
  const { operationId, record, path, says } = conflict
  const head = `"${named(source.workspace, path)}" (${record.kind}, ${operationId}): ${says}.`
  const diff = difference(source, conflict)
  return diff === '' ? head : `${head}\n${diff}`
}

/** From what the change left, or else from what it kept, to what is there now. */
function difference(source: DiffSource, conflict: UndoConflict): string {
  const { operationId, record, path, found } = conflict
  if (source.workspace.refuses?.(path) !== undefined) return ''
  if (found?.type !== 'file' || record.node !== undefined || record.kind === 'mkdir') return ''
  const now = currentContent(source.workspace, path)
  if (now === undefined) return ''
  const left = record.kind === 'delete' || record.kind === 'move' ? undefined : laterContent(source, conflict)
  const before = left ?? (record.size === undefined ? undefined : source.changes.content(operationId, record.seq))
  if (before === undefined) return '(What the change left is not kept, so the difference cannot be shown.)'
  const from = left === undefined ? 'from what was there before the change' : 'from what the change left'
  const display = displayOf(source.workspace, path)
  const diff = diffOf({ before, after: now, display, maxChars: DIFF_CHARS })
  return diff === '' ? '' : `Difference ${from} to now:\n${diff}`
}

/** Later operations that changed the very path, newest first. */
function changedLater(operations: readonly ChangedOperation[], conflict: UndoConflict): string[] {
  const { operationId: own, path } = conflict
  const later = operations.slice(
    0,
    operations.findIndex(({ id }) => id === own),
  )
  return standing(later)
    .filter(({ record }) => touches(record, path))
    .map(({ operationId }) => operationId)
}

function touches({ path, to }: { path: string; to?: string }, wanted: string): boolean {
  return [path, to].some((one) => one === wanted || (one !== undefined && wanted.startsWith(`${one}/`)))
}

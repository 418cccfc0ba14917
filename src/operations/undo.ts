import { KikiError, messageOf } from '../lib/errors.js'
import type { ChangeContext } from '../workspace/files.js'
import { applyStep } from '../workspace/undo-apply.js'
import { needsContent, type PastChange, planUndo, type UndoPlan, type UndoStep } from '../workspace/undo-plan.js'
import { movedBy } from './change-content.js'
import {
  type ChangedOperation,
  changesOf,
  keyOf,
  keyOfPast,
  type SessionChanges,
  standing,
  undoneBy,
} from './changes.js'
import { conflictError, stepWords } from './undo-words.js'

/** What to take back: one operation's changes, all from an operation on, or the latest ones that still stand. */
export interface UndoRequest {
  operationId?: string | undefined
  since?: string | undefined
  /** Only say what would be done. */
  dryRun?: boolean | undefined
}

export interface UndoContext extends ChangeContext {
  changes: SessionChanges
  progress(message: string): void
}

export interface Undone {
  /** What was done, or with `dryRun` would be, in this order. */
  steps: readonly UndoStep[]
  /** Changes that were as before already. */
  asBefore: readonly PastChange[]
  /** Made folders that stay because something is in them. */
  kept: readonly PastChange[]
  /** For the content of steps. */
  operations: readonly ChangedOperation[]
}

interface Selection {
  /** Newest first. */
  selected: PastChange[]
  /** From the oldest selected one on, newest first. */
  operations: ChangedOperation[]
}

/** Operations that are looked through at a time for the latest that still stands. */
const PAGE = 50

/**
 * Takes recorded changes back, newest first, each through the safe walk and as a recorded change of its own (FI-14).
 * Everything is checked before anything is changed; one change that cannot be taken back refuses the whole.
 * @throws KikiError `conflict` with the difference where something changed since, `not_found` where there is nothing to
 * undo, `operation_unavailable`, `too_large`, `cancelled`, and as the walk. A later step that fails says what was done.
 */
export async function undoChanges(context: UndoContext, request: UndoRequest): Promise<Undone> {
  const { plan, operations } = await choose(context, request)
  if (plan.conflicts.length > 0) throw conflictError(context, operations, plan)
  if (request.dryRun !== true) await applyAll(context, plan.steps)
  return { steps: plan.steps, asBefore: plan.asBefore, kept: plan.kept, operations }
}

async function choose(
  context: UndoContext,
  request: UndoRequest,
): Promise<{ plan: UndoPlan; operations: ChangedOperation[] }> {
  if (request.operationId === undefined && request.since === undefined) return chooseLatest(context)
  const { selected, operations } =
    request.operationId === undefined
      ? selectSince(context.changes, request.since)
      : selectOne(context.changes, request.operationId)
  return { plan: await plan(context, { selected, operations }), operations }
}

/** All changes of one operation, also those that were taken back: what is there tells which still stand. */
function selectOne(changes: Pick<SessionChanges, 'since'>, operationId: string): Selection {
  const operations = changes.since(operationId)
  const operation = operations.find(({ id }) => id === operationId)
  if (operation === undefined) {
    throw new KikiError('not_found', `Operation ${operationId} changed no files.`, {
      hint: 'List the changes of the session; those made by commands are not recorded.',
    })
  }
  return { selected: changesOf(operation), operations }
}

/** Everything that stands since an operation. What was done and taken back within that time is left as it is. */
function selectSince(changes: Pick<SessionChanges, 'since'>, since: string | undefined): Selection {
  const operations = changes.since(since)
  if (operations.length === 0) throw nothing()
  return { selected: standing(operations), operations }
}

/** The newest operation, undos aside, of whose changes something still stands. */
async function chooseLatest(context: UndoContext): Promise<{ plan: UndoPlan; operations: ChangedOperation[] }> {
  for (const candidate of latest(context.changes)) {
    const chosen = await plan(context, candidate)
    if (chosen.steps.length > 0 || chosen.conflicts.length > 0) return { plan: chosen, ...candidate }
  }
  throw nothing()
}

/** Newest first: operations, undos aside, with the changes that were not taken back. */
function* latest(changes: Pick<SessionChanges, 'page'>): Generator<Selection> {
  const operations: ChangedOperation[] = []
  for (;;) {
    const page = changes.page({ before: operations.at(-1)?.position, limit: PAGE })
    for (const operation of page) {
      operations.push(operation)
      const undone = undoneBy(operations)
      const selected = changesOf(operation).filter(
        ({ record }) =>
          record.undoes === undefined && !undone.has(keyOf({ operationId: operation.id, seq: record.seq })),
      )
      if (selected.length > 0) yield { selected, operations }
    }
    if (page.length < PAGE) return
  }
}

/**
 * Every path that an undo is about; of the latest operation where none is named.
 * @throws KikiError as {@link undoChanges}, about what is not recorded.
 */
export function pathsOfUndo(changes: Pick<SessionChanges, 'page' | 'since'>, request: UndoRequest): string[] {
  const selected = selectionOf(changes, request)?.selected ?? []
  return [...new Set(selected.flatMap(({ record: { path, to } }) => (to === undefined ? [path] : [path, to])))]
}

function selectionOf(
  changes: Pick<SessionChanges, 'page' | 'since'>,
  { operationId, since }: UndoRequest,
): Selection | undefined {
  if (operationId !== undefined) return selectOne(changes, operationId)
  if (since !== undefined) return selectSince(changes, since)
  const [newest] = latest(changes)
  return newest
}

async function plan(context: UndoContext, { selected, operations }: Selection): Promise<UndoPlan> {
  const made = await planUndo({
    workspace: context.workspace,
    signal: context.signal,
    changes: selected,
    remade: new Set(
      operations.flatMap(({ changes }) =>
        changes.filter(({ kind, undoes }) => kind === 'mkdir' && undoes !== undefined).map(({ path }) => path),
      ),
    ),
    content: ({ operationId, record }) => context.changes.content(operationId, record.seq),
  })
  return withMovedAway(made, { selected, operations })
}

/** Something made that is not there any more may only have been moved by a later call: then it is not gone. */
function withMovedAway(made: UndoPlan, { selected, operations }: Selection): UndoPlan {
  const chosen = new Set(selected.map(keyOfPast))
  const order = new Map(operations.map(({ id }, index) => [id, index]))
  const moves = standing(operations).filter((past) => past.record.kind === 'move' && !chosen.has(keyOfPast(past)))
  const asBefore: PastChange[] = []
  for (const change of made.asBefore) {
    const { kind, path } = change.record
    const mover =
      (kind === 'create' || kind === 'mkdir') &&
      moves.find(
        ({ operationId, record }) =>
          (order.get(operationId) ?? 0) < (order.get(change.operationId) ?? 0) && movedBy(record, path) !== undefined,
      )
    if (!mover) asBefore.push(change)
    else made.conflicts.push({ ...change, path, says: `it was moved later (${mover.operationId})`, found: undefined })
  }
  return { ...made, asBefore }
}

async function applyAll(context: UndoContext, steps: readonly UndoStep[]): Promise<void> {
  for (const [index, step] of steps.entries()) {
    try {
      if (context.signal.aborted) throw new KikiError('cancelled', 'It was cancelled.')
      if (index > 0 && index % 100 === 0) context.progress(`${index} of ${steps.length} changes undone`)
      const content = needsContent(step) ? context.changes.content(step.operationId, step.record.seq) : undefined
      await applyStep(context, step, content)
    } catch (error) {
      throw index === 0 ? error : partly(context, steps, index, error)
    }
    // Lets a cancel in.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

function partly(context: UndoContext, steps: readonly UndoStep[], done: number, error: unknown): KikiError {
  const failed = steps[done]
  const where = failed === undefined ? '' : ` at ${stepWords(context.workspace, failed)}`
  const code = error instanceof KikiError ? error.code : 'internal_error'
  return new KikiError(
    code,
    `Undo stopped${where} after ${done} of ${steps.length} steps: ${messageOf(error)} Done: ${steps
      .slice(0, Math.min(done, 20))
      .map((step) => stepWords(context.workspace, step))
      .join('; ')}${done > 20 ? '; …' : ''}.`,
    {
      hint: 'Mend the cause and repeat the undo, which then does the rest; or undo what this call did.',
      data: {
        effects_possible: true,
        done: steps.slice(0, done).map(({ operationId, record }) => ({ operation_id: operationId, seq: record.seq })),
        steps: steps.length,
      },
      cause: error,
    },
  )
}

function nothing(): KikiError {
  return new KikiError('not_found', 'There is nothing to undo in this session.', {
    hint: 'List its changes. Those made by commands are not recorded; an undo is undone by its operation id.',
  })
}

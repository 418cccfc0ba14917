import { setImmediate } from 'node:timers/promises'
import { KikiError, messageOf } from '../lib/errors.js'
import { createPace } from '../lib/slices.js'
import { descend, type Node } from './descend.js'
import { cancelled, changedMeanwhile } from './errors.js'
import { type ChangeContext, createFile, readExisting, replaceExisting } from './files.js'
import { foundAt } from './found.js'
import { type ChangeRecord, syncFolder } from './journal.js'
import { shownPath } from './list.js'
import { moveFile } from './move.js'
import type { PatchStep } from './patch-plan.js'
import { displayOf } from './paths.js'
import { removeNode } from './remove.js'
import { applyStep, at } from './undo-apply.js'
import { needsContent, type PastChange, planUndo, type UndoPlan } from './undo-plan.js'
import type { Place } from './walk.js'

export interface PatchContext extends ChangeContext {
  operationId: string
  /** Earlier content that this operation's journal keeps. */
  content(operationId: string, seq: number): Buffer | undefined
}

/**
 * Carries a planned patch out, each step through the safe walk and recorded before. What is there is compared once more at each
 * step. Where a step fails, or the call is cancelled, everything done so far is put back, as recorded changes (FI-10).
 * @throws KikiError as the step that failed; it says that all was put back, or else what stands (`effects_possible`).
 */
export async function applySteps(context: PatchContext, steps: readonly PatchStep[]): Promise<void> {
  const first = context.journal.records().length
  const pause = createPace()
  for (const step of steps) {
    try {
      await pause()
      if (context.signal.aborted) throw cancelled()
      await carryOut(context, step)
    } catch (error) {
      throw await putBack(context, context.journal.records().slice(first), { step, error })
    }
  }
}

async function carryOut(context: ChangeContext, step: PatchStep): Promise<void> {
  const { workspace, journal } = context
  if (step.act === 'move') {
    at({ workspace, path: step.path }, (place, node) => expected(place, node, step.expect))
    await moveFile(context, step.path, step.to)
    return
  }
  at({ workspace, path: step.path }, (place, node) => {
    if (step.act === 'create') {
      if (node !== undefined) throw changedMeanwhile(place.display)
      createFile({ workspace, journal }, place, step.after, step.executable)
      return
    }
    const there = expected(place, node, step.expect)
    if (step.act === 'remove') {
      removeNode(journal, place, there)
      syncFolder(descend.at(place.folder, '.'))
      return
    }
    const before = readExisting(place, there)
    if (!before.equals(step.before)) throw changedMeanwhile(place.display)
    replaceExisting({ workspace, journal }, place, there, { before, after: step.after, mode: step.mode })
  })
}

function expected(place: Place, node: Node | undefined, expect: Extract<PatchStep, { act: 'remove' }>['expect']): Node {
  if (node === undefined) throw changedMeanwhile(place.display)
  const found = foundAt(place, node)
  const same =
    found.type === expect.type &&
    (expect.sha256 === undefined || found.sha256 === expect.sha256) &&
    (expect.identity === undefined || found.identity === expect.identity)
  if (!same) throw changedMeanwhile(place.display)
  return node
}

/** Takes the changes so far back, newest first, and makes the error that tells how that went. */
async function putBack(
  context: PatchContext,
  records: readonly ChangeRecord[],
  failed: { step: PatchStep; error: unknown },
): Promise<unknown> {
  const { error } = failed
  if (!(error instanceof KikiError) && records.length === 0) return error
  const changes = records.toReversed().map((record) => ({ operationId: context.operationId, record }))
  try {
    const plan = await planBack(context, changes)
    const steps = plan.steps.length
    for (const step of plan.steps) {
      const content = needsContent(step) ? context.content(step.operationId, step.record.seq) : undefined
      await applyStep({ ...context, signal: new AbortController().signal }, step, content)
      await setImmediate()
    }
    if (plan.conflicts.length > 0)
      return standing(context, failed, plan.conflicts, 'it was changed by something else since')
    return restored(failed, steps)
  } catch (cause) {
    return standing(context, failed, await stillThere(context, changes), messageOf(cause))
  }
}

/** A cancelled call is put back too, so its signal does not count here. */
function planBack(context: PatchContext, changes: readonly PastChange[]): Promise<UndoPlan> {
  return planUndo({
    workspace: context.workspace,
    signal: new AbortController().signal,
    changes,
    remade: new Set(),
    content: ({ operationId, record }) => context.content(operationId, record.seq),
  })
}

/** What would still have to be put back; all of it where even that cannot be told. */
async function stillThere(context: PatchContext, changes: readonly PastChange[]): Promise<readonly PastChange[]> {
  try {
    const { steps, conflicts } = await planBack(context, changes)
    return [...steps, ...conflicts]
  } catch (error) {
    if (error instanceof KikiError) return changes
    throw error
  }
}

function restored({ step, error }: { step: PatchStep; error: unknown }, count: number): unknown {
  if (!(error instanceof KikiError)) return error
  const says =
    count === 0 ? 'Nothing was changed.' : `Nothing is changed: what was written before it (${count}) was put back.`
  return new KikiError(error.code, `The patch stopped at ${shownPath(step.section)}: ${error.message} ${says}`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    data: { ...error.data, path: step.section },
    cause: error,
  })
}

const DONE: Record<ChangeRecord['kind'], string> = {
  create: 'created',
  modify: 'modified',
  delete: 'deleted',
  move: 'moved',
  mkdir: 'made folder',
}

/** Changes that are named; of more the number. */
const NAMED = 50

function standing(
  { workspace }: PatchContext,
  { step, error }: { step: PatchStep; error: unknown },
  left: readonly PastChange[],
  why: string,
): KikiError {
  const words = left.toReversed().map(({ record }) => {
    const to = record.to === undefined ? '' : ` to ${shownPath(displayOf(workspace, record.to))}`
    return `${DONE[record.kind]} ${shownPath(displayOf(workspace, record.path))}${to}`
  })
  const more = words.length > NAMED ? `; and ${words.length - NAMED} more` : ''
  return new KikiError(
    error instanceof KikiError ? error.code : 'internal_error',
    `The patch stopped at ${shownPath(step.section)}: ${messageOf(error)} Not everything could be put back: ${why}. ` +
      `These changes stand: ${words.slice(0, NAMED).join('; ')}${more}.`,
    {
      hint: 'Undo takes back what stands, once the cause is mended.',
      data: { effects_possible: true, stands: words.slice(0, NAMED) },
      cause: error,
    },
  )
}

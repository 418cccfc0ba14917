import { beginningOf } from '../lib/content.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { mustBeApproved, recheck } from './claim.js'
import { endRow } from './end-row.js'
import type { Live } from './live.js'
import type { OperationsDeps, Work } from './operations.js'
import { encodeOutcome, type Outcome } from './outcome.js'
import { errorText, passesLimits } from './present.js'

export interface Finished {
  outcome: Outcome
  recorded: boolean
}

/** Runs the work and commits its outcome. */
export async function finish(deps: OperationsDeps, live: Live, work: Work): Promise<Finished> {
  const outcome = await runWork(deps, live, work)
  try {
    return { outcome: await save(deps, live, outcome), recorded: live.recorded }
  } catch (error) {
    deps.log.error({ operation: live.id, error: messageOf(error) }, 'the outcome could not be saved')
    return { outcome: unsaved(live, error), recorded: false }
  }
}

async function runWork(deps: OperationsDeps, live: Live, work: Work): Promise<Outcome> {
  try {
    if (live.controller.signal.aborted) throw live.controller.signal.reason
    if (live.row.status === 'accepted') await begin(deps, live)
    live.began = true
    const { failure, ...shown } = await work(live)
    return failure === undefined ? { status: 'completed', ...shown } : withShown(failed(deps, live, failure), shown)
  } catch (error) {
    return failed(deps, live, error)
  }
}

/** A call that waited for its turn begins: everything its decision rests on is checked again (GU-02). */
async function begin({ store, clock, bootId }: OperationsDeps, live: Live): Promise<void> {
  const now = clock.now()
  Object.assign(live.row, { status: 'running', started_at: now, boot_id: bootId, attempt: 1 })
  if (!live.recorded) return recheck(store, live.row)
  await store.commits.durable(() => {
    recheck(store, live.row)
    mustBeApproved(store, live.row)
    if (!store.operations.start(live.id, bootId, now))
      throw new KikiError('cancelled', 'It was cancelled before it began.')
  })
}

function failed({ log }: OperationsDeps, live: Live, error: unknown): Outcome {
  const effects = live.began && live.effect !== 'read'
  if (live.cancelRequested && isCancellation(error)) {
    const message = live.began
      ? `${live.tool} was cancelled after it had begun.`
      : `${live.tool} was cancelled before it began.`
    return withEffects({ status: 'cancelled', ...errorFields('cancelled', message) }, effects)
  }
  if (error instanceof KikiError) {
    const { code, message, hint, data } = error
    const status = code === 'cancelled' ? 'cancelled' : code === 'outcome_unknown' ? 'outcome_unknown' : 'failed'
    return withEffects({ status, ...errorFields(code, message, hint, data) }, effects && status !== 'failed')
  }
  const bug = newId('op').slice(-8)
  log.error(
    { operation: live.id, bug, error: error instanceof Error ? (error.stack ?? error.message) : String(error) },
    'a tool failed by a bug',
  )
  return {
    status: 'failed',
    ...errorFields(
      'internal_error',
      `${live.tool} failed inside Kiki (log entry ${bug}).`,
      'The owner finds the details in the log.',
    ),
  }
}

/** A failure that has something to show: that first, then why. */
function withShown(outcome: Outcome, { content, facts }: Pick<Outcome, 'content' | 'facts'>): Outcome {
  return { ...outcome, content: [...content, ...outcome.content], ...(facts === undefined ? {} : { facts }) }
}

function isCancellation(error: unknown): boolean {
  return (
    (error instanceof KikiError && error.code === 'cancelled') ||
    (error instanceof Error && error.name === 'AbortError')
  )
}

function errorFields(
  code: KikiError['code'],
  message: string,
  hint?: string,
  data?: Record<string, unknown>,
): Pick<Outcome, 'content' | 'error'> {
  const error: NonNullable<Outcome['error']> = { code, message }
  if (hint !== undefined) error.hint = hint
  if (data !== undefined) error.data = data
  return { content: [{ type: 'text', text: errorText({ code, message, hint }) }], error }
}

function withEffects(outcome: Outcome, effects: boolean): Outcome {
  return effects ? { ...outcome, effectsPossible: true } : outcome
}

/** Commits result, changes and terminal state together; a read's record may come later, or sooner if its result is paged. */
async function save(deps: OperationsDeps, live: Live, outcome: Outcome): Promise<Outcome> {
  const { store, clock } = deps
  const ended_at = clock.now()
  const ending = {
    status: outcome.status,
    ended_at,
    error_code: outcome.error?.code ?? null,
    effects_possible: outcome.effectsPossible === true ? 1 : 0,
  }
  const keep =
    live.key !== null || live.effect !== 'read' || live.recorded || passesLimits(outcome.content, live.limits)
  if (!keep) {
    const chars = outcome.content.reduce((sum, block) => sum + (beginningOf(block, 0)?.length ?? 0), 0)
    live.recorded = true
    store.commits.lazy(() => {
      store.operations.insert({ ...live.row, ...ending, result_chars: chars })
      deps.audit.recordCall(live.row, ending)
    })
    return outcome
  }
  const { result, chars, parts } = encodeOutcome(outcome)
  const commit = live.effect === 'read' && live.key === null ? store.commits.quick : store.commits.vital
  // From here on it counts as recorded: a cancel that comes before the commit must not write it again, as running (GU-24).
  const isNew = !live.recorded
  live.recorded = true
  const saved = await commit(() => {
    if (isNew) store.operations.insert(live.row)
    const first = endRow(deps, live.row, { ...ending, result, result_chars: chars })
    if (first) for (const { part, body } of parts) store.results.insert(live.id, part, body)
    saveChanges(store, live)
    return first
  }).catch((error: unknown) => {
    live.recorded = !isNew
    throw error
  })
  return saved ? outcome : endedElsewhere(live, outcome)
}

/** What was changed is recorded however the row was ended, so that it can be shown and undone (FI-14). */
function saveChanges(store: OperationsDeps['store'], live: Live): void {
  const records = live.journal?.records() ?? []
  if (records.length === 0 || store.operations.get(live.id) === undefined) return
  for (const record of records) {
    store.changes.insert({
      operation_id: live.id,
      seq: record.seq,
      session_ref: live.sessionRef,
      record: JSON.stringify(record),
    })
  }
}

/** The row was ended by someone else first (revoke, policy change): that ending stands. */
function endedElsewhere(live: Live, outcome: Outcome): Outcome {
  const cancelled: Outcome = { status: 'cancelled', ...errorFields('cancelled', `${live.tool} was cancelled.`) }
  return withEffects(cancelled, live.began && live.effect !== 'read' && outcome.status !== 'cancelled')
}

function unsaved(live: Live, error: unknown): Outcome {
  const effects = live.began && live.effect !== 'read'
  const message = `${live.tool} ended, but its outcome could not be saved (${messageOf(error)}).`
  return withEffects(
    {
      status: effects ? 'outcome_unknown' : 'failed',
      ...errorFields(
        effects ? 'outcome_unknown' : 'internal_error',
        message,
        'Inspect the target before you try again.',
      ),
    },
    effects,
  )
}

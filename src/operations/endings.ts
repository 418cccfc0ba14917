import type { KikiError } from '../lib/errors.js'
import type { OperationRow, TerminalStatus } from '../store/operations.js'
import type { Live } from './live.js'
import type { OperationsDeps } from './operations.js'
import { encodeOutcome, type Outcome } from './outcome.js'
import { errorText } from './present.js'

/** Cancels a row that nobody carries out. One that is over stays as it is. */
export async function endIdle({ store, clock }: OperationsDeps, id: string): Promise<void> {
  await store.commits.vital(() =>
    store.operations.end(id, {
      status: 'cancelled',
      ended_at: clock.now(),
      error_code: 'cancelled',
      effects_possible: 0,
      result: null,
      result_chars: 0,
    }),
  )
}

/** Ends a row whose work was told to stop and was not seen ending within `seconds` (OP-11). */
export async function endUnseen({ store, clock }: OperationsDeps, live: Live, seconds: number): Promise<void> {
  const effects = live.began && live.effect !== 'read'
  const message = `${live.tool} was cancelled, but its end was not seen within ${seconds} s${effects ? ': whether it took effect is not known' : ''}.`
  const hint = effects
    ? 'Inspect the target first. It never runs again by itself; if it must, use a new key.'
    : undefined
  const outcome: Outcome = { status: 'outcome_unknown', ...failure('outcome_unknown', message, hint) }
  const { result, chars } = encodeOutcome(outcome)
  await store.commits.vital(() =>
    store.operations.end(live.id, {
      status: outcome.status,
      ended_at: clock.now(),
      error_code: 'outcome_unknown',
      effects_possible: effects ? 1 : 0,
      result,
      result_chars: chars,
    }),
  )
}

/** What is told of an operation that is over and has no saved result. */
export function withoutResult(row: OperationRow, status: TerminalStatus): Outcome {
  const outcome: Outcome = { status, ...fieldsWithoutResult(row, status) }
  if (row.effects_possible === 1) outcome.effectsPossible = true
  return outcome
}

function fieldsWithoutResult(row: OperationRow, status: TerminalStatus): Pick<Outcome, 'content' | 'error'> {
  const started = row.started_at === null ? undefined : new Date(row.started_at).toISOString()
  switch (status) {
    case 'outcome_unknown':
      return failure(
        'outcome_unknown',
        `Kiki's host stopped while ${row.tool} was running (started ${started ?? 'at an unknown time'}): whether it took effect is not known.`,
        'Inspect the target first. It never runs again by itself; if it must, use a new key.',
      )
    case 'cancelled':
      return failure(
        'cancelled',
        `${row.tool} was cancelled ${started === undefined ? 'before it began' : `after it had begun at ${started}`}.`,
        row.effects_possible === 1 ? 'Effects are possible: inspect the target.' : undefined,
      )
    default:
      return failure(
        'result_missing',
        `The result of ${row.tool} was not saved; only side effects, keyed calls and cut results are.`,
        'Call the tool again.',
      )
  }
}

function failure(
  code: KikiError['code'],
  message: string,
  hint: string | undefined,
): Pick<Outcome, 'content' | 'error'> {
  const error = hint === undefined ? { code, message } : { code, message, hint }
  return { content: [{ type: 'text', text: errorText(error) }], error }
}

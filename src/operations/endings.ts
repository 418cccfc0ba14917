import type { KikiError } from '../lib/errors.js'
import type { OperationRow, TerminalStatus } from '../store/operations.js'
import { endRow } from './end-row.js'
import type { Live } from './live.js'
import type { OperationsDeps } from './operations.js'
import { encodeOutcome, type Outcome } from './outcome.js'
import { errorText } from './present.js'

/** Cancels a row that nobody carries out. One that is over stays as it is. */
export async function endIdle(deps: OperationsDeps, id: string): Promise<void> {
  const { store, clock } = deps
  await store.commits.vital(() => {
    const row = store.operations.get(id)
    if (row === undefined) return
    endRow(deps, row, {
      status: 'cancelled',
      ended_at: clock.now(),
      error_code: 'cancelled',
      effects_possible: 0,
      result: null,
      result_chars: 0,
    })
  })
}

/** Ends a row whose work was told to stop and was not seen ending within `seconds` (OP-11). */
export async function endUnseen(deps: OperationsDeps, live: Live, seconds: number): Promise<void> {
  const { store, clock } = deps
  const effects = live.began && live.effect !== 'read'
  const message = `${live.tool} was cancelled, but its end was not seen within ${seconds} s${effects ? ': whether it took effect is not known' : ''}.`
  const hint = effects
    ? 'Inspect the target first. It never runs again by itself; if it must, use a new key.'
    : undefined
  const outcome: Outcome = { status: 'outcome_unknown', ...failure('outcome_unknown', message, hint) }
  const { result, chars } = encodeOutcome(outcome)
  await store.commits.vital(() =>
    endRow(deps, live.row, {
      status: outcome.status,
      ended_at: clock.now(),
      error_code: 'outcome_unknown',
      effects_possible: effects ? 1 : 0,
      result,
      result_chars: chars,
    }),
  )
}

/** Who is told: a client can call again, the owner looks on. */
export type Reader = 'client' | 'owner'

/** What is told of an operation that is over and has no saved result. */
export function withoutResult(row: OperationRow, status: TerminalStatus, reader: Reader): Outcome {
  const outcome: Outcome = { status, ...fieldsWithoutResult(row, status, reader) }
  if (row.effects_possible === 1) outcome.effectsPossible = true
  return outcome
}

function fieldsWithoutResult(
  row: OperationRow,
  status: TerminalStatus,
  reader: Reader,
): Pick<Outcome, 'content' | 'error'> {
  const forClient = reader === 'client'
  const started = row.started_at === null ? undefined : new Date(row.started_at).toISOString()
  switch (status) {
    case 'outcome_unknown':
      return failure(
        'outcome_unknown',
        `Kiki's host stopped while ${row.tool} was running (started ${started ?? 'at an unknown time'}): whether it took effect is not known.`,
        forClient
          ? 'Inspect the target first. It never runs again by itself; if it must, use a new key.'
          : 'Look at what it was to change. Kiki never runs it again by itself.',
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
        forClient
          ? 'Call the tool again.'
          : 'The client got it when it ended; Kiki keeps only this record of the call.',
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

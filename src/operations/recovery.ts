import { messageOf } from '../lib/errors.js'
import type { OperationRow } from '../store/operations.js'
import { readJournal, restoreInPlace } from '../workspace/journal.js'
import type { OperationsDeps } from './operations.js'
import { encodeOutcome } from './outcome.js'

/**
 * After the death of a host: what it was running is `outcome_unknown` and never runs again; a read has simply failed; file
 * changes that it had journalled are recorded, and a write that was interrupted in place is put back (GU-05, FI-06).
 * @returns the `accepted` rows, which the composition root dispatches once.
 */
export async function recover(
  deps: OperationsDeps,
  changesFolder: string,
): Promise<{ accepted: OperationRow[]; unknown: number }> {
  const { store, log } = deps
  const unfinished = store.operations.unfinished()
  const running = unfinished.filter((row) => row.status === 'running')
  for (const row of running) {
    const records = readJournal(changesFolder, row.id)
    for (const record of records) {
      if (record.inPlace !== true) continue
      try {
        restoreInPlace(changesFolder, row.id, record)
      } catch (error) {
        log.error(
          { operation: row.id, path: record.path, error: messageOf(error) },
          'an interrupted write could not be put back',
        )
      }
    }
    await store.commits.durable(() => {
      store.operations.end(row.id, endingOf(deps, row))
      for (const record of records) {
        store.changes.insert({
          operation_id: row.id,
          seq: record.seq,
          session_ref: row.session_ref,
          record: JSON.stringify(record),
        })
      }
    })
  }
  return {
    accepted: unfinished.filter((row) => row.status === 'accepted'),
    unknown: running.filter((row) => row.effect !== 'read').length,
  }
}

function endingOf({ clock }: OperationsDeps, row: OperationRow) {
  if (row.effect !== 'read') {
    return {
      status: 'outcome_unknown' as const,
      ended_at: clock.now(),
      error_code: 'outcome_unknown',
      effects_possible: 1,
      result: null,
      result_chars: 0,
    }
  }
  const message = `Kiki's host stopped while ${row.tool} was reading.`
  const error = {
    code: 'internal_error' as const,
    message,
    hint: 'It changed nothing: call it again with a new key or none.',
  }
  const { result, chars } = encodeOutcome({
    status: 'failed',
    content: [{ type: 'text', text: `${error.code}: ${message} ${error.hint}` }],
    error,
  })
  return {
    status: 'failed' as const,
    ended_at: clock.now(),
    error_code: 'internal_error',
    effects_possible: 0,
    result,
    result_chars: chars,
  }
}

import type { Clock } from '../lib/clock.js'
import { messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import type { SavedOutput } from '../processes/output/saved.js'
import type { ChangeTable } from '../store/changes.js'
import type { OperationRow, OperationTable } from '../store/operations.js'
import { type ChangeRecord, readJournal } from '../workspace/journal.js'
import { removeTemporary, restoreInPlace } from '../workspace/recover.js'
import { endRow } from './end-row.js'
import { withoutResult } from './endings.js'
import type { OperationsDeps } from './operations.js'
import { encodeOutcome, type ResultSources } from './outcome.js'
import { errorText } from './present.js'

export interface RecoveryDeps extends OperationsDeps {
  changesFolder: string
}

/**
 * After the death of a host: what it was running is `outcome_unknown` and never runs again; a read has simply failed; file
 * changes that it had journalled are recorded, and a write that was interrupted in place is put back (GU-05, FI-06).
 * @returns the `accepted` rows, which the composition root dispatches once, and those that go on waiting for the owner.
 */
export async function recover(
  deps: RecoveryDeps,
): Promise<{ accepted: OperationRow[]; waiting: OperationRow[]; unknown: number }> {
  const unfinished = deps.store.operations.unfinished()
  const running = unfinished.filter((row) => row.status === 'running')
  for (const row of running) await recoverOne(deps, row)
  const accepted = unfinished.filter((row) => row.status === 'accepted')
  const waiting = unfinished.filter((row) => row.status === 'waiting_approval')
  return { accepted, waiting, unknown: running.filter((row) => row.effect !== 'read').length }
}

async function recoverOne(deps: RecoveryDeps, row: OperationRow): Promise<void> {
  const records = journalOf(deps, row)
  repairFiles(deps, row, records)
  await deps.store.commits.vital(() => {
    endRow(deps, row, endingOf(deps, row))
    recordChanges(deps.store.changes, row, records)
  })
}

/**
 * After a restore: what was unfinished when the backup was made may have ended since, so nothing of it runs (again), and
 * no file is touched; its outcome is unknown. Within the caller's transaction.
 * @returns how many operations that were.
 */
export function endRestored(
  { operations, changes }: { operations: OperationTable; changes: ChangeTable },
  { changesFolder, clock, log }: { changesFolder: string; clock: Clock; log: Pick<Log, 'error'> },
): number {
  const unfinished = operations.unfinished()
  for (const row of unfinished) {
    operations.end(row.id, endingOf({ clock }, row))
    recordChanges(changes, row, journalOf({ changesFolder, log }, row))
  }
  return unfinished.length
}

function recordChanges(changes: ChangeTable, row: OperationRow, records: readonly ChangeRecord[]): void {
  for (const record of records) {
    changes.insert({
      operation_id: row.id,
      seq: record.seq,
      session_ref: row.session_ref,
      record: JSON.stringify(record),
    })
  }
}

/** One operation's damaged journal must not keep the host from starting: its outcome is unknown all the same. */
function journalOf(
  { changesFolder, log }: { changesFolder: string; log: Pick<Log, 'error'> },
  row: OperationRow,
): ChangeRecord[] {
  try {
    return readJournal(changesFolder, row.id)
  } catch (error) {
    log.error({ operation: row.id, error: messageOf(error) }, 'the journal of an interrupted operation cannot be read')
    return []
  }
}

/** Finishes what a crash left half done in files: a temporary file beside, a write in place (FI-06). */
function repairFiles({ changesFolder, log }: RecoveryDeps, row: OperationRow, records: ChangeRecord[]): void {
  for (const record of records) {
    try {
      removeTemporary(record)
      if (record.inPlace === true) restoreInPlace(changesFolder, row.id, record)
    } catch (error) {
      log.error(
        { operation: row.id, path: record.path, error: messageOf(error) },
        'an interrupted write could not be put back',
      )
    }
  }
}

function endingOf({ clock, outputs }: { clock: Clock; outputs?: ResultSources['outputs'] }, row: OperationRow) {
  const ended_at = clock.now()
  if (row.effect !== 'read') {
    return {
      status: 'outcome_unknown' as const,
      ended_at,
      error_code: 'outcome_unknown',
      effects_possible: 1,
      ...resultOf(outputs?.saved(row.id), row),
    }
  }
  const message = `Kiki's host stopped while ${row.tool} was reading.`
  const error = {
    code: 'internal_error' as const,
    message,
    hint: 'It changed nothing: call it again with a new key or none.',
  }
  const text = errorText(error)
  const { result, chars } = encodeOutcome({ status: 'failed', content: [{ type: 'text', text }], error })
  return {
    status: 'failed' as const,
    ended_at,
    error_code: 'internal_error',
    effects_possible: 0,
    result,
    result_chars: chars,
  }
}

/** What a command had written until its host died is kept, and shown before what is said of it. */
function resultOf(saved: SavedOutput | undefined, row: OperationRow): { result: string | null; result_chars: number } {
  if (saved === undefined) return { result: null, result_chars: 0 }
  const { content, ...rest } = withoutResult(row, 'outcome_unknown', 'client')
  const written = { type: 'long_text' as const, length: saved.chars, read: saved.text }
  const { result, chars } = encodeOutcome({ ...rest, content: [written, ...content] })
  return { result, result_chars: chars }
}

import { messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { OperationRow } from '../store/operations.js'
import { type ChangeRecord, createJournal, journalContent, readJournal } from '../workspace/journal.js'
import { removeTemporary, restoreInPlace } from '../workspace/recover.js'
import type { Workspace } from '../workspace/workspace.js'
import type { OperationsDeps } from './operations.js'
import { encodeOutcome } from './outcome.js'

export interface RecoveryDeps extends OperationsDeps {
  changesFolder: string
  /** The workspace that an operation worked in. @throws KikiError `session_unavailable`. */
  workspaceOf(row: OperationRow): Workspace
}

/**
 * After the death of a host: what it was running is `outcome_unknown` and never runs again; a read has simply failed; file
 * changes that it had journalled are recorded, and a write that was interrupted in place is put back (GU-05, FI-06).
 * @returns the `accepted` rows, which the composition root dispatches once.
 */
export async function recover(deps: RecoveryDeps): Promise<{ accepted: OperationRow[]; unknown: number }> {
  const unfinished = deps.store.operations.unfinished()
  const running = unfinished.filter((row) => row.status === 'running')
  for (const row of running) await recoverOne(deps, row)
  const accepted = unfinished.filter((row) => row.status === 'accepted')
  return { accepted, unknown: running.filter((row) => row.effect !== 'read').length }
}

async function recoverOne(deps: RecoveryDeps, row: OperationRow): Promise<void> {
  const records = readJournal(deps.changesFolder, row.id)
  const repair = records.length === 0 ? undefined : putBack(deps, row, records)
  await deps.store.commits.durable(() => {
    deps.store.operations.end(row.id, endingOf(deps, row))
    insertChanges(deps, row.id, row.session_ref, records)
    if (repair === undefined) return
    deps.store.operations.insert(repair.row)
    insertChanges(deps, repair.row.id, row.session_ref, repair.records)
  })
}

/** Finishes what a crash left half done in files; what it put back is an operation of its own. */
function putBack(deps: RecoveryDeps, row: OperationRow, records: readonly ChangeRecord[]) {
  const id = newId('op', deps.clock.now())
  const journal = createJournal({ dir: deps.changesFolder, operationId: id })
  try {
    const workspace = deps.workspaceOf(row)
    for (const record of records) {
      removeTemporary(workspace, record)
      const before = record.inPlace === true ? journalContent(deps.changesFolder, row.id, record.seq) : undefined
      if (before !== undefined) restoreInPlace({ workspace, journal }, record, before)
    }
  } catch (error) {
    deps.log.error({ operation: row.id, error: messageOf(error) }, 'an interrupted write could not be put back')
  }
  return journal.records().length === 0 ? undefined : { row: repairRow(deps, id, row), records: journal.records() }
}

function repairRow({ clock, bootId }: RecoveryDeps, id: string, of: OperationRow) {
  const { seq: _seq, ...fields } = of
  const now = clock.now()
  const { result, chars } = encodeOutcome({
    status: 'completed',
    content: [{ type: 'text', text: `Put back what ${of.id} was writing when Kiki's host stopped.` }],
  })
  return {
    ...fields,
    id,
    parent_id: of.id,
    idempotency_key: null,
    tool: 'kiki_recovery',
    arguments: '{}',
    status: 'completed' as const,
    accepted_at: now,
    started_at: now,
    ended_at: now,
    boot_id: bootId,
    result,
    result_chars: chars,
  }
}

function insertChanges(
  { store }: RecoveryDeps,
  id: string,
  sessionRef: string,
  records: readonly ChangeRecord[],
): void {
  for (const record of records) {
    store.changes.insert({ operation_id: id, seq: record.seq, session_ref: sessionRef, record: JSON.stringify(record) })
  }
}

function endingOf({ clock }: RecoveryDeps, row: OperationRow) {
  const ended_at = clock.now()
  if (row.effect !== 'read') {
    return {
      status: 'outcome_unknown' as const,
      ended_at,
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
  const text = `${error.code}: ${message} ${error.hint}`
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

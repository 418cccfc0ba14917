import type { Clock } from '../lib/clock.js'
import { createPace } from '../lib/slices.js'
import type { Outputs } from '../processes/output/outputs.js'
import type { Store } from '../store/store.js'
import { removeJournal } from '../workspace/journal.js'

const DAY_MS = 86_400_000
/** Rows removed in one transaction, of each kind: results may be large, and nothing else runs meanwhile (GU-45). */
export const STEP = 50

export interface Retention {
  /** Days that finished operations and their keys are kept; at least 1 (OP-07). */
  days: number
  /** Days that a tombstone refuses an expired key after that. */
  tombstoneDays: number
}

export interface PruneDeps {
  store: Store
  clock: Clock
  changesFolder: string
  outputs: Pick<Outputs, 'remove'>
}

/** Removes one step of what is past its time; true when there may be more. */
export async function prune(
  { store, clock, changesFolder, outputs }: PruneDeps,
  retention: Retention,
): Promise<boolean> {
  const now = clock.now()
  const rows = store.operations.expired(now - retention.days * DAY_MS, STEP)
  // Before the rows: kept content whose row is gone would never be found again.
  const pause = createPace()
  for (const row of rows) {
    removeJournal(changesFolder, row.id)
    outputs.remove(row.id)
    await pause()
  }
  const tombstones = await store.commits.durable(() => {
    for (const row of rows) {
      if (row.idempotency_key !== null) store.keys.bury(row.connection_id, row.session_ref, row.idempotency_key, now)
      store.operations.remove(row.id)
    }
    return store.keys.prune(now - retention.tombstoneDays * DAY_MS, STEP)
  })
  return rows.length === STEP || tombstones === STEP
}

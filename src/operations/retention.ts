import type { Clock } from '../lib/clock.js'
import { createPace } from '../lib/slices.js'
import type { Outputs } from '../processes/output/outputs.js'
import type { OperationRow } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { removeJournal } from '../workspace/journal.js'

const DAY_MS = 86_400_000
/** Rows removed in one transaction, of each kind: nothing else runs meanwhile (GU-45). */
export const STEP = 50
/** Chunks of their results, about 32 MB: one operation may have kept a file of 64 MiB (MD-01). */
const STEP_CHUNKS = 256

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
  const expired = store.operations.expired(now - retention.days * DAY_MS, STEP)
  const rows = oneStep(store, expired)
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
  return expired.length === STEP || rows.length < expired.length || tombstones === STEP
}

/** The first of them, as many as have no more results than a step removes, and one at least. */
function oneStep({ results }: Pick<Store, 'results'>, rows: readonly OperationRow[]): readonly OperationRow[] {
  let chunks = 0
  const end = rows.findIndex(({ id }, index) => {
    chunks += results.chunks(id)
    return index > 0 && chunks > STEP_CHUNKS
  })
  return end < 0 ? rows : rows.slice(0, end)
}

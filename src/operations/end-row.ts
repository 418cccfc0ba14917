import type { Audit } from '../audit/audit.js'
import type { Ending, NewOperation } from '../store/operations.js'
import type { Store } from '../store/store.js'

export interface EndDeps {
  store: Store
  audit: Pick<Audit, 'recordCall'>
}

/**
 * Within a transaction: how an operation ended, and its entry in the audit log (GU-68).
 * @returns false when it was over already; then nothing is written.
 */
export function endRow({ store, audit }: EndDeps, row: NewOperation, ending: Ending): boolean {
  if (!store.operations.end(row.id, ending)) return false
  audit.recordCall(row, ending)
  return true
}

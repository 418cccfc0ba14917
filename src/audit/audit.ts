import type { Clock } from '../lib/clock.js'
import { messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import type { AuditRow } from '../store/audit.js'
import type { Store } from '../store/store.js'
import { type CalledRow, callEntry, type Refusal, refusalEntry } from './calls.js'
import { appendEntry, type Detail, type Entry, type Head } from './chain.js'
import type { AuditFiles } from './head-file.js'
import { exportLines, listEntries, type Page } from './read.js'
import { createRefusalLimit } from './refusal-limit.js'
import { HEAD_MISMATCH, reaches, type Verification, verifyChain } from './verify.js'

export interface AuditDeps extends AuditFiles {
  store: Pick<Store, 'audit' | 'commits'>
  clock: Clock
  log: Pick<Log, 'error'>
}

/** The append-only log of who did what and by which rule (GU-68). Kiki never removes an entry. */
export interface Audit {
  /** Within a commit's job, so that an entry is committed together with what it tells of. Fails only as the database does. */
  append(entry: Entry): void
  /** For reads and refusals: committed soon, by itself (GU-08). */
  appendLazily(entry: Entry): void
  /** Within the job that ends an operation, whichever kind of commit that is. */
  recordCall(row: CalledRow, ending: Parameters<typeof callEntry>[1]): void
  /** A call that the gate refused before it was an operation: at most 120 a minute of one connection, the rest as a number. */
  recordRefusal(refusal: Refusal): void
  /** Within the job that begins a host's run, before any other entry: also notes where the log was cut off meanwhile. */
  started(detail: Detail): void
  list(page: Page): Promise<AuditRow[]>
  /** The log as JSON Lines, the head last. */
  export(): AsyncGenerator<string>
  /** Reads all of it through; `exported` is a head from an earlier export. */
  verify(exported?: Head): Promise<Verification>
  close(): void
}

export function createAudit({ store, key, head, clock, log }: AuditDeps): Audit {
  const { audit: table, commits } = store
  const refusals = createRefusalLimit(clock)
  let appended = false
  let failed = false

  function append(entry: Entry): void {
    appendEntry(table, key, entry, clock.now())
    appended = true
  }

  /** All that was appended is on disk now. A head that cannot be written stays behind, which is no fault of the log. */
  function keepHead(): void {
    if (!appended) return
    try {
      const last = table.last()
      if (last !== undefined) head.write({ seq: last.seq, mac: last.mac.toString('hex') })
      appended = false
      failed = false
    } catch (error) {
      if (!failed) log.error({ error: messageOf(error) }, "the audit log's head could not be kept")
      failed = true
    }
  }

  function started(detail: Detail): void {
    const kept = head.read()
    if (!reaches(table, kept)) {
      const found = table.last()?.seq ?? 0
      const was: Detail = kept === undefined ? {} : { kept_seq: kept.seq, kept_mac: kept.mac }
      log.error({ ...was, found_seq: found }, 'the audit log does not reach its kept head: entries were removed')
      append({ actor: 'host', action: HEAD_MISMATCH, detail: { ...was, found_seq: found } })
    }
    append({ actor: 'host', action: 'host.started', detail })
  }

  commits.onSynced(keepHead)
  return {
    append,
    appendLazily: (entry) => commits.lazy(() => append(entry)),
    recordCall: (row, ending) => append(callEntry(row, ending)),
    recordRefusal(refusal) {
      const leftOut = refusals.take(refusal.connectionId)
      if (leftOut !== undefined) commits.lazy(() => append(refusalEntry(refusal, leftOut)))
    },
    started,
    list(page) {
      commits.flush()
      return listEntries(table, page)
    },
    export() {
      commits.flush()
      return exportLines(table)
    },
    verify(exported) {
      commits.flush()
      return verifyChain({ table, key, kept: head.read(), exported })
    },
    close: () => head.close(),
  }
}

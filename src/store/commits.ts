import { deferred } from '../lib/async.js'
import type { Ballast } from './ballast.js'
import { type Database, setSynchronous } from './database.js'
import { diskIsFull, isDiskFailure, storeFailure } from './failures.js'

/** How writes reach the disk. Everything that writes goes through here, so the order of commits is the order of calls. */
export interface Commits {
  /**
   * Runs `job` in a transaction and resolves once it is synced to disk. Jobs of one turn of the event loop share one
   * sync; a job that throws is undone alone. Rejects with what the job threw, or, where nothing could be committed, with
   * KikiError `timeout` (another program holds the database) or `internal_error` (full disk); then it had no effect.
   */
  durable<T>(job: () => T): Promise<T>
  /**
   * As `durable`, for what must be written even when the disk is full: how an operation ended, a revocation. The ballast's place
   * is given to it; until the ballast is back, all other writes are refused (GU-42).
   */
  vital<T>(job: () => T): Promise<T>
  /** As `durable`, but without a sync: survives a crash of the host, not of the machine. For reads (GU-08). */
  quick<T>(job: () => T): Promise<T>
  /** Records of reads: written with the next commit, at most {@link LAZY_MS} later. */
  lazy(job: () => void): void
  /** Writes everything that waits now; for queries that must see it, and before closing. */
  flush(): void
  /** Calls `listener` after each synced commit, before its jobs have their values. It must not throw, nor write here. */
  onSynced(listener: () => void): void
}

/**
 * Told just before and just after each commit of the database, `durable` where it is synced. For programs that embed Kiki and
 * for tests that end the process there: it must return, and cannot change what is committed.
 */
export type OnCommit = (when: 'before' | 'after', kind: 'durable' | 'quick') => void

/** Longest time that the record of a read stays in memory only. */
const LAZY_MS = 50
/** Records of reads that are held before they are written without waiting for the time. */
const LAZY_MAX = 500

interface Job {
  vital: boolean
  run(): void
  undo(error: unknown): void
  done(): void
}

export interface CommitSeams {
  onCommit?: OnCommit | undefined
  ballast?: Ballast | undefined
}

export function createCommits(
  db: Database,
  onLazyError: (error: unknown) => void,
  { onCommit, ballast }: CommitSeams = {},
): Commits {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  const savepoint = db.prepare('SAVEPOINT job')
  const release = db.prepare('RELEASE job')
  const rollbackJob = db.prepare('ROLLBACK TO job')
  let jobs: Job[] = []
  let synced = false
  let armed = false
  let lazyTimer: NodeJS.Timeout | undefined
  const onSynced: (() => void)[] = []

  /** True when it stands; false when it was undone alone. Throws when SQLite gave up the whole transaction (full disk). */
  function runJob(job: Job): boolean {
    savepoint.run()
    try {
      job.run()
      release.run()
      return true
    } catch (error) {
      // Tried once more in the place of the ballast.
      if (!db.inTransaction || (job.vital && isDiskFailure(error))) throw error
      rollbackJob.run()
      release.run()
      job.undo(storeFailure(error))
      return false
    }
  }

  function flush(): void {
    armed = false
    clearTimeout(lazyTimer)
    lazyTimer = undefined
    const batch = new Set(jobs)
    const kind = synced ? 'durable' : 'quick'
    jobs = []
    synced = false
    if (ballast !== undefined && someNotVital(batch) && !ballast.restore()) refuseNotVital(batch, diskIsFull())
    if (batch.size > 0) commitAll(batch, kind, true)
  }

  function commitAll(batch: Set<Job>, kind: 'durable' | 'quick', mayFree: boolean): void {
    try {
      if (kind === 'quick') setSynchronous(db, 'NORMAL')
      begin.run()
      for (const job of batch) if (!runJob(job)) batch.delete(job)
      onCommit?.('before', kind)
      commit.run()
      onCommit?.('after', kind)
    } catch (error) {
      if (db.inTransaction) rollback.run()
      const failure = storeFailure(error)
      if (mayFree && isDiskFailure(error)) refuseNotVital(batch, failure)
      if (mayFree && isDiskFailure(error) && batch.size > 0 && ballast?.free()) commitAll(batch, kind, false)
      else for (const job of batch) job.undo(failure)
      return
    } finally {
      if (kind === 'quick') setSynchronous(db, 'FULL')
    }
    if (kind === 'durable') for (const listener of onSynced) listener()
    for (const job of batch) job.done()
  }

  function arm(): void {
    if (armed) return
    armed = true
    setImmediate(() => {
      if (armed) flush()
    })
  }

  function enqueue<T>(run: () => T, vital = false): Promise<T> {
    const result = deferred<T>()
    let value: T
    jobs.push({
      vital,
      run: () => {
        value = run()
      },
      undo: (error) => result.reject(error),
      done: () => result.resolve(value),
    })
    arm()
    return result.promise
  }

  return {
    durable(job) {
      synced = true
      return enqueue(job)
    },
    vital(job) {
      synced = true
      return enqueue(job, true)
    },
    quick: (job) => enqueue(job),
    lazy(run) {
      jobs.push({ vital: false, run, undo: onLazyError, done: () => {} })
      if (jobs.length >= LAZY_MAX) arm()
      else if (!armed && lazyTimer === undefined) lazyTimer = setTimeout(flush, LAZY_MS)
    },
    flush,
    onSynced: (listener) => void onSynced.push(listener),
  }
}

function someNotVital(batch: ReadonlySet<Job>): boolean {
  for (const job of batch) if (!job.vital) return true
  return false
}

/** Accepting fails closed: what is not vital leaves the batch with its failure. */
function refuseNotVital(batch: Set<Job>, failure: unknown): void {
  for (const job of batch) {
    if (job.vital) continue
    batch.delete(job)
    job.undo(failure)
  }
}

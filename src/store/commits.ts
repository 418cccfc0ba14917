import { deferred } from '../lib/async.js'
import { type Database, setSynchronous } from './database.js'
import { storeFailure } from './failures.js'

/** How writes reach the disk. Everything that writes goes through here, so the order of commits is the order of calls. */
export interface Commits {
  /**
   * Runs `job` in a transaction and resolves once it is synced to disk. Jobs of one turn of the event loop share one
   * sync; a job that throws is undone alone. Rejects with what the job threw, or, where nothing could be committed, with
   * KikiError `timeout` (another program holds the database) or `internal_error` (full disk); then it had no effect.
   */
  durable<T>(job: () => T): Promise<T>
  /** As `durable`, but without a sync: survives a crash of the host, not of the machine. For reads (GU-08). */
  quick<T>(job: () => T): Promise<T>
  /** Records of reads: written with the next commit, at most {@link LAZY_MS} later. */
  lazy(job: () => void): void
  /** Writes everything that waits now; for queries that must see it, and before closing. */
  flush(): void
}

/** Longest time that the record of a read stays in memory only. */
const LAZY_MS = 50
/** Records of reads that are held before they are written without waiting for the time. */
const LAZY_MAX = 500

interface Job {
  run(): void
  undo(error: unknown): void
  done(): void
}

export function createCommits(db: Database, onLazyError: (error: unknown) => void): Commits {
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

  /** True when it stands; false when it was undone alone. Throws when SQLite gave up the whole transaction (full disk). */
  function runJob(job: Job): boolean {
    savepoint.run()
    try {
      job.run()
      release.run()
      return true
    } catch (error) {
      if (!db.inTransaction) throw error
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
    const durable = synced
    jobs = []
    synced = false
    if (batch.size === 0) return
    try {
      if (!durable) setSynchronous(db, 'NORMAL')
      begin.run()
      for (const job of batch) if (!runJob(job)) batch.delete(job)
      commit.run()
    } catch (error) {
      if (db.inTransaction) rollback.run()
      const failure = storeFailure(error)
      for (const job of batch) job.undo(failure)
      return
    } finally {
      if (!durable) setSynchronous(db, 'FULL')
    }
    for (const job of batch) job.done()
  }

  function arm(): void {
    if (armed) return
    armed = true
    setImmediate(() => {
      if (armed) flush()
    })
  }

  function enqueue<T>(run: () => T): Promise<T> {
    const result = deferred<T>()
    let value: T
    jobs.push({
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
    quick: enqueue,
    lazy(run) {
      jobs.push({ run, undo: onLazyError, done: () => {} })
      if (jobs.length >= LAZY_MAX) arm()
      else if (!armed && lazyTimer === undefined) lazyTimer = setTimeout(flush, LAZY_MS)
    },
    flush,
  }
}

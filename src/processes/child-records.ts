import { rmdirSync } from 'node:fs'
import type { Clock } from '../lib/clock.js'
import { systemCode } from '../lib/errors.js'
import type { Store } from '../store/store.js'
import { endIfSame, type StartRecord } from './start-record.js'

/** Which children the next host has to end, should this one die (GU-02, GU-05). */
export interface ChildRecords {
  /** On disk when it settles. @returns what forgets it, once the child has ended. */
  add(record: StartRecord, placeholders?: readonly string[]): Promise<() => void>
  /** Ends what a dead host left, and removes what its sandboxes needed. @returns how many children were still there. */
  endLeft(): Promise<number>
}

export function createChildRecords({ store, clock }: { store: Store; clock: Clock }): ChildRecords {
  return {
    async add({ pid, startTime, mark }, placeholders = []) {
      const row = {
        pid,
        start_time: startTime,
        mark: mark ?? null,
        placeholders: JSON.stringify(placeholders),
        started_at: clock.now(),
      }
      const id = await store.commits.durable(() => store.children.insert(row))
      return () => store.commits.lazy(() => store.children.remove(id))
    },
    async endLeft() {
      let ended = 0
      for (const { id, pid, start_time, mark, placeholders } of store.children.all()) {
        if (endIfSame({ pid, startTime: start_time, ...(mark === null ? {} : { mark }) })) ended += 1
        removePlaceholders(JSON.parse(placeholders) as string[])
        await store.commits.durable(() => store.children.remove(id))
      }
      return ended
    },
  }
}

/** The last made first. What somebody put something into, or has removed, stays as it is. */
export function removePlaceholders(paths: readonly string[]): void {
  for (const path of paths.toReversed()) {
    try {
      rmdirSync(path)
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY', 'ENOTDIR', 'EEXIST'].includes(systemCode(error) ?? '')) throw error
    }
  }
}

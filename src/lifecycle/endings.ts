import type { Audit } from '../audit/audit.js'
import type { Events } from '../events/events.js'
import type { Connections } from '../grants/connections.js'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import { createPace } from '../lib/slices.js'
import { endRow } from '../operations/end-row.js'
import type { Operations } from '../operations/operations.js'
import type { Outputs } from '../processes/output/outputs.js'
import type { Sessions } from '../sessions/sessions.js'
import type { EndedWorktree, Worktrees } from '../sessions/worktrees.js'
import type { OperationRow } from '../store/operations.js'
import type { Store } from '../store/store.js'
import { removeJournal } from '../workspace/journal.js'

export interface LifecycleDeps {
  store: Store
  audit: Pick<Audit, 'recordCall'>
  clock: Clock
  events: Events
  connections: Connections
  sessions: Sessions
  operations: Operations
  /** Where earlier content of changed files is kept. */
  changesFolder: string
  outputs: Pick<Outputs, 'remove'>
  worktrees: Pick<Worktrees, 'release'>
}

interface Filter {
  connectionId?: string
  sessionRef?: string
}

export interface EndedSession {
  /** Operations that were unfinished. */
  cancelled: number
  /** Where it worked in one that Kiki made. */
  worktree?: EndedWorktree
}

export type Lifecycle = ReturnType<typeof createLifecycle>

/** What pause, revoke, policy change, session close and deletion bring about. Each is one transaction before any work is stopped. */
export function createLifecycle(deps: LifecycleDeps) {
  const { store, clock, events, connections, sessions } = deps

  async function connectionEvent(id: string, status: string): Promise<void> {
    await events.emit('connection.changed', { connectionId: id, status })
    await events.emit('catalog.changed', { connectionId: id })
  }

  /** Ends the rows of unfinished work inside a transaction; the work itself is stopped after it. */
  function endRows(filter: Filter, only: (row: OperationRow) => boolean = () => true): OperationRow[] {
    const rows = store.operations.unfinished(filter).filter(only)
    for (const row of rows) {
      endRow(deps, row, {
        status: 'cancelled',
        ended_at: clock.now(),
        error_code: 'cancelled',
        effects_possible: row.status === 'running' && row.effect !== 'read' ? 1 : 0,
        result: null,
        result_chars: 0,
      })
    }
    return rows
  }

  /** Stops whatever of this connection or session still runs, reads included, and waits until it has ended. */
  async function stopWork(filter: Filter, reason: string): Promise<void> {
    const lives = deps.operations
      .lives()
      .filter(
        (live) =>
          live.connectionId === (filter.connectionId ?? live.connectionId) &&
          live.sessionRef === (filter.sessionRef ?? live.sessionRef),
      )
    await Promise.all(lives.map((live) => deps.operations.cancel(live.id, reason)))
  }

  /** Decided within the transaction: what is revoked meanwhile stays revoked. @returns what was waiting and is cancelled. */
  async function setStatus(id: string, status: 'active' | 'paused'): Promise<OperationRow[]> {
    return store.commits.vital(() => {
      if (connections.require(id).status === 'revoked') {
        throw new KikiError('conflict', `Connection ${id} is revoked; that cannot be taken back.`, {
          hint: 'Make a new one with `kiki connections add`.',
        })
      }
      store.connections.setStatus(id, status, clock.now())
      return status === 'paused' ? endRows({ connectionId: id }, (row) => row.status !== 'running') : []
    })
  }

  return {
    /** Stops new calls and cancels what waits; a side effect that runs goes on to its end (AP-09). */
    async pause(id: string): Promise<{ cancelled: number }> {
      const rows = await setStatus(id, 'paused')
      await Promise.all(rows.map((row) => deps.operations.cancel(row.id, 'The owner paused the connection.')))
      await connectionEvent(id, 'paused')
      return { cancelled: rows.length }
    },

    async resume(id: string): Promise<void> {
      await setStatus(id, 'active')
      await connectionEvent(id, 'active')
    },

    /** The standing rules were narrowed: every connection's policy is another, and its unfinished work is cancelled (AP-08). */
    async policyChanged(): Promise<{ cancelled: number }> {
      const rows = await store.commits.vital(() => {
        store.connections.raisePolicyVersions(clock.now())
        return endRows({})
      })
      await Promise.all(rows.map((row) => deps.operations.cancel(row.id, "The owner's rules changed.")))
      for (const { id, status } of connections.list()) await connectionEvent(id, status)
      return { cancelled: rows.length }
    },

    /** State, policy version, unfinished work and tokens in one transaction, before anything is stopped (GU-30). */
    async revoke(id: string): Promise<{ cancelled: number }> {
      const rows = await store.commits.vital(() => {
        if (connections.require(id).status === 'revoked') return undefined
        store.connections.setStatus(id, 'revoked', clock.now())
        store.connections.revokeTokens(id, clock.now())
        return endRows({ connectionId: id })
      })
      if (rows === undefined) return { cancelled: 0 }
      await stopWork({ connectionId: id }, 'The owner revoked the connection.')
      await connectionEvent(id, 'revoked')
      return { cancelled: rows.length }
    },

    /** Changes a grant. Another access policy is a new version and cancels unfinished work (AP-08). */
    async change(id: string, change: Parameters<Connections['changed']>[1]): Promise<{ cancelled: number }> {
      const { next, policyChanged, rows } = await store.commits.vital(() => {
        const { next, policyChanged } = connections.changed(id, change)
        store.connections.update({
          id,
          name: next.name,
          grant_json: JSON.stringify(next.grant),
          expires_at: next.expiresAt,
          policy_version: next.policyVersion,
          updated_at: clock.now(),
        })
        return { next, policyChanged, rows: policyChanged ? endRows({ connectionId: id }) : [] }
      })
      if (policyChanged) await stopWork({ connectionId: id }, "The connection's access policy changed.")
      await connectionEvent(id, next.status)
      return { cancelled: rows.length }
    },

    /** Removes a revoked connection that has no sessions left; its operations stay as records. */
    async deleteConnection(id: string): Promise<void> {
      await store.commits.durable(() => {
        if (connections.require(id).status !== 'revoked') {
          throw new KikiError('conflict', `Connection ${id} is not revoked.`, {
            hint: `Revoke it first: kiki connections revoke ${id}`,
          })
        }
        const left = sessions.list({ connectionId: id, limit: 1, offset: 0 })
        if (left.length > 0) {
          throw new KikiError('conflict', `Connection ${id} still has sessions.`, {
            hint: `Delete them first: kiki sessions list --connection ${id}`,
          })
        }
        store.connections.remove(id)
      })
      await connectionEvent(id, 'deleted')
    },

    /** Ends a session: unfinished work is cancelled, records stay (SE-08), and so does a worktree that holds something (SE-10). */
    async closeSession(ref: string): Promise<EndedSession> {
      const session = sessions.require(ref)
      const rows = await store.commits.vital(() => {
        store.sessions.close(ref, clock.now())
        store.attachments.detachSession(ref)
        return endRows({ sessionRef: ref })
      })
      await stopWork({ sessionRef: ref }, 'The session was closed.')
      await sessionEvent(session.connectionId, ref)
      // Only now has all that worked in it ended.
      const worktree = await deps.worktrees.release(session.workspace)
      return { cancelled: rows.length, ...(worktree === undefined ? {} : { worktree }) }
    },

    /** Closes and removes a session with its operations, results and saved texts (SE-14). */
    async deleteSession(ref: string): Promise<EndedSession> {
      const session = sessions.require(ref)
      const ended = await this.closeSession(ref)
      const removed = await store.commits.durable(() => {
        const ids = store.operations.idsOfSession(ref)
        store.operations.removeSession(ref)
        store.sessions.remove(ref)
        return ids
      })
      const pause = createPace()
      for (const id of removed) {
        removeJournal(deps.changesFolder, id)
        deps.outputs.remove(id)
        await pause()
      }
      await sessionEvent(session.connectionId, ref)
      return ended
    },

    /** Ends all work before the host stops; what waits for the owner goes on waiting (AP-02). */
    async stopAll(): Promise<void> {
      const working = deps.operations.lives().filter((live) => !live.waiting)
      await Promise.all(working.map((live) => deps.operations.cancel(live.id, "Kiki's host is stopping.")))
    },
  }

  async function sessionEvent(connectionId: string, ref: string): Promise<void> {
    await events.emit('session.changed', { sessionRef: ref, connectionId })
    await events.emit('catalog.changed', { connectionId })
  }
}

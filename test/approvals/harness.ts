import { createApprovals } from '../../src/approvals/approvals.js'
import type { Kind } from '../../src/approvals/kinds.js'
import { createStandingRules } from '../../src/grants/standing-rules.js'
import { silentLog } from '../../src/lib/log.js'
import type { OperationRow } from '../../src/store/operations.js'
import { openCore } from '../operations/harness.js'

export interface AskOptions {
  connection?: string
  session?: string
  kinds?: Kind[]
  definition?: string
}

/** The middle of the host with approvals, and work that counts how often it ran. */
export async function openApprovals(expiry?: number) {
  const core = await openCore()
  const { store, audit, clock, events, operations } = core
  const rules = createStandingRules({ store, clock, argumentsOf: () => 'paths' })
  const runs = new Map<string, number>()
  const approvals = createApprovals({
    ...{ store, audit, clock, events, log: silentLog, operations, rules },
    expiry: () => expiry,
    async dispatch(row: OperationRow) {
      const live = operations.adopt(row, { limits: { text: 1000, media: 1000 }, lanes: [] })
      await operations.run(live, async () => {
        runs.set(row.id, (runs.get(row.id) ?? 0) + 1)
        return { content: [] }
      })
    },
  })
  let asked = 0
  return {
    ...core,
    approvals,
    rules,
    runs: (id: string) => runs.get(id) ?? 0,
    /** An operation that waits; its question and itself. */
    async ask({ connection, session, kinds = [], definition = 'd' }: AskOptions = {}) {
      const request = core.request(`k${++asked}`)
      if (connection !== undefined) request.connection = core.connections.require(connection)
      if (session !== undefined) request.session = core.sessions.require(session)
      const question = { decision: request.decision, kinds, definition, places: [] }
      const claim = await operations.claim({ ...request, ask: (row) => approvals.ask(row, question).id })
      if (claim.kind !== 'new') throw new Error('the key is new')
      return { live: claim.live, id: claim.live.row.approval_id as string }
    },
    /** One more connection with a session. */
    async place() {
      const { connection } = await core.connections.create({
        name: `c${++asked}`,
        kind: 'local',
        grant: { ceiling: 'full' },
        expires_at: null,
      })
      const { ref } = await core.sessions.create({ connection: connection.id, workspace: core.session.workspace })
      return { connection: connection.id, session: ref }
    },
  }
}

export type ApprovalCore = Awaited<ReturnType<typeof openApprovals>>

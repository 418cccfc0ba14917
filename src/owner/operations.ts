import { Hono } from 'hono'
import { z } from 'zod'
import { jsonBody } from '../http/json-body.js'
import { beginningOf } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { isTerminal } from '../operations/operations.js'
import { redact } from '../operations/redact.js'
import { FOUND } from '../store/operation-notes.js'
import { type OperationRow, STATUSES } from '../store/operations.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'
import { targetOf } from './operation-target.js'
import { query } from './query.js'

const listQuery = z.strictObject({
  session: z.string().optional(),
  connection: z.string().optional(),
  status: z.enum(STATUSES).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  before: z.coerce.number().int().optional(),
})

/** Characters of one text block that a list of the owner's shows. */
const SHOWN_CHARS = 100_000

/** `/operations`: every recorded call, newest first, paged by `before` (CL-08). */
export function operationRoutes(deps: OwnerDeps) {
  const require = (id: string): OperationRow => {
    const row = deps.store.operations.get(id)
    if (row === undefined)
      throw new KikiError('not_found', `There is no operation ${id}.`, {
        hint: 'List them with `kiki operations list`.',
      })
    return row
  }
  return new Hono<OwnerEnv>()
    .get('/', async (c) => {
      const { session, connection, status, limit, before } = query(listQuery, c.req.query())
      await deps.operations.settleRecords()
      const rows = deps.store.operations.list({
        ...(session === undefined ? {} : { sessionRef: session }),
        ...(connection === undefined ? {} : { connectionId: connection }),
        ...(status === undefined ? {} : { status }),
        ...(before === undefined ? {} : { beforeSeq: before }),
        limit: limit + 1,
      })
      const shown = rows.slice(0, limit)
      const next = rows.length > limit ? { next_before: shown.at(-1)?.seq } : {}
      return c.json({ operations: shown.map(operationView), ...next }, 200)
    })
    .get('/:id', async (c) => {
      await deps.operations.settleRecords()
      const row = require(c.req.param('id'))
      return c.json({ ...operationView(row), ...detailView(deps, row) }, 200)
    })
    .post('/:id/cancel', async (c) => {
      await deps.operations.settleRecords()
      const before = require(c.req.param('id'))
      if (isTerminal(before.status)) return c.json({ ...operationView(before), changed: false }, 200)
      await deps.operations.cancel(before.id, 'The owner cancelled it.')
      return c.json({ ...operationView(require(before.id)), changed: true }, 200)
    })
    .post('/:id/resolve', jsonBody(resolveSchema), async (c) => {
      const row = require(c.req.param('id'))
      if (row.status !== 'outcome_unknown') {
        throw new KikiError('conflict', `The outcome of ${row.id} is known: it is ${row.status}.`, {
          hint: 'Only an operation whose outcome is unknown can be noted about.',
        })
      }
      const note = { operation_id: row.id, ...c.req.valid('json'), noted_at: deps.clock.now() }
      await deps.store.commits.durable(() => deps.store.notes.put(note))
      return c.json({ ...operationView(row), ...detailView(deps, row) }, 200)
    })
}

const resolveSchema = z.strictObject({ found: z.enum(FOUND), note: z.string().trim().max(2000).default('') })

function operationView(row: OperationRow) {
  return {
    id: row.id,
    connection: row.connection_id,
    session_ref: row.session_ref,
    client: row.client === null ? null : (JSON.parse(row.client) as { name: string; version: string }),
    tool: row.tool,
    target: targetOf(JSON.parse(row.arguments)),
    effect: row.effect,
    status: row.status,
    error_code: row.error_code,
    effects_possible: row.effects_possible === 1,
    policy_version: row.policy_version,
    decision: JSON.parse(row.decision) as { kind: string; by: string; classes?: string[]; unconfined?: true },
    parent: row.parent_id,
    approval: row.approval_id,
    argument_hash: row.fingerprint,
    accepted_at: time(row.accepted_at),
    started_at: time(row.started_at),
    ended_at: time(row.ended_at),
    result_chars: row.result_chars,
  }
}

function detailView(deps: OwnerDeps, row: OperationRow) {
  const outcome = isTerminal(row.status) ? deps.operations.outcomeOf(row, 'owner') : undefined
  const text = outcome?.content.map((block) => beginningOf(block, SHOWN_CHARS)?.text ?? `[${block.type}]`).join('\n')
  const changes = deps.store.changes
    .ofOperation(row.id)
    .map((change) => JSON.parse(change.record) as Record<string, unknown>)
  const noted = deps.store.notes.get(row.id)
  const note = noted === undefined ? null : { found: noted.found, note: noted.note, noted_at: time(noted.noted_at) }
  const args = redact(JSON.parse(row.arguments))
  return { arguments: args, result: text ?? null, facts: outcome?.facts ?? null, changes, note }
}

import { Hono } from 'hono'
import { z } from 'zod'
import { callAsOwner } from '../calls/call-tool.js'
import { jsonBody } from '../http/json-body.js'
import { beginningOf } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { diffOfChange } from '../operations/change-content.js'
import { type ChangedOperation, createSessionChanges, keyOf, undoneBy } from '../operations/changes.js'
import type { Session } from '../sessions/sessions.js'
import { undo } from '../tools/files/undo.js'
import { openWorkspace } from '../workspace/workspace.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'
import { query } from './query.js'

const listQuery = z.strictObject({
  session: z.string().optional(),
  operation: z.string().optional(),
  /** Operations in one answer. */
  limit: z.coerce.number().int().min(1).max(200).default(50),
  before: z.coerce.number().int().optional(),
  diff: z.enum(['true', 'false']).default('false'),
})

const undoRequest = z.strictObject({ dry_run: z.boolean().default(false) })
const sessionUndoRequest = undoRequest.extend({ since: z.string().max(128).optional() })

/** Differences in one answer, and characters of each. */
const MAX_DIFFS = 200
const DIFF_CHARS = 20_000

/** What git sees is not asked for: running git in a folder that a client can write to would run what it configured there. */
const NOTE = 'Changes made by commands are not recorded here; in a git workspace, see `git status` and `git diff`.'

/** `GET /changes?session=|operation=`: what file tools changed, newest first, with differences if asked for (FI-14, CL-08). */
export function changeRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().get('/', async (c) => {
    const asked = query(listQuery, c.req.query())
    await deps.operations.settleRecords()
    const session = sessionOf(deps, asked)
    const recorded = createSessionChanges(deps.gate, session.ref)
    const operations = asked.operation === undefined ? recorded.since() : recorded.since(asked.operation)
    const wanted = operations.filter(({ id, position }) =>
      asked.operation === undefined ? position < (asked.before ?? Number.MAX_SAFE_INTEGER) : id === asked.operation,
    )
    const shown = wanted.slice(0, asked.limit)
    const last = shown.at(-1)?.position
    const changes = shown.flatMap((operation) => changeViews(operation, undoneBy(operations)))
    const diffs = asked.diff === 'true' ? differences(deps, session, { operations, shown }) : undefined
    return c.json(
      {
        session_ref: session.ref,
        workspace: session.workspace,
        changes: changes.map((view) => ({
          ...view,
          ...diffs?.get(keyOf({ operationId: view.operation, seq: view.seq })),
        })),
        ...(shown.length < wanted.length && last !== undefined ? { next_before: last } : {}),
        note: NOTE,
      },
      200,
    )
  })
}

/** `POST /operations/:id/undo` (FI-14). */
export function operationUndoRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().post('/:id/undo', jsonBody(undoRequest), async (c) => {
    await deps.operations.settleRecords()
    const session = sessionOf(deps, { operation: c.req.param('id') })
    return c.json(
      await undoAsOwner(deps, session.ref, { operation_id: c.req.param('id'), ...c.req.valid('json') }),
      200,
    )
  })
}

/** `POST /sessions/:ref/undo`: everything, or from the operation `since` on (FI-14). */
export function sessionUndoRoutes(deps: OwnerDeps) {
  return new Hono<OwnerEnv>().post('/:ref/undo', jsonBody(sessionUndoRequest), async (c) => {
    const session = deps.sessions.require(c.req.param('ref'))
    const { since, dry_run } = c.req.valid('json')
    const first = since ?? createSessionChanges(deps.gate, session.ref).since().at(-1)?.id
    if (first === undefined) throw nothing(session.ref)
    return c.json(await undoAsOwner(deps, session.ref, { since: first, dry_run }), 200)
  })
}

/** The tool itself, run by the owner: the same checks, and an operation of the session. */
async function undoAsOwner(deps: OwnerDeps, session: string, args: Record<string, unknown>) {
  const { operationId, outcome } = await callAsOwner(deps.gate, session, undo, args)
  if (outcome.error !== undefined) {
    const { code, message, hint, data } = outcome.error
    throw new KikiError(code, message, {
      ...(hint === undefined ? {} : { hint }),
      data: { ...data, operation_id: operationId },
    })
  }
  const text = outcome.content.map((block) => beginningOf(block, Number.MAX_SAFE_INTEGER)?.text ?? '').join('\n')
  return { operation_id: operationId, session_ref: session, text, ...undoFacts.parse(outcome.facts) }
}

const undoFacts = z.object({
  dry_run: z.boolean(),
  undone: z.array(z.object({ operation_id: z.string(), seq: z.number(), did: z.string(), path: z.string() })),
  as_before: z.number(),
  kept: z.array(z.string()),
})

function sessionOf(deps: OwnerDeps, asked: { session?: string | undefined; operation?: string | undefined }): Session {
  if ((asked.session === undefined) === (asked.operation === undefined)) {
    throw new KikiError('invalid_arguments', 'Give either session or operation.', {
      hint: 'For example ?session=ext_….',
    })
  }
  if (asked.session !== undefined) return deps.sessions.require(asked.session)
  const row = deps.store.operations.get(asked.operation ?? '')
  if (row !== undefined) return deps.sessions.require(row.session_ref)
  throw new KikiError('not_found', `There is no operation ${asked.operation}.`, {
    hint: 'List them with `kiki operations list`.',
  })
}

function changeViews(operation: ChangedOperation, undone: ReadonlyMap<string, string>) {
  const { id, tool, status, by, at, changes } = operation
  return changes.toReversed().map((record) => ({
    operation: id,
    seq: record.seq,
    tool,
    status,
    by,
    at: time(at),
    kind: record.kind,
    path: record.path,
    to: record.to ?? null,
    node: record.node ?? 'file',
    mode: record.mode?.toString(8) ?? null,
    before_sha256: record.beforeSha256 ?? null,
    after_sha256: record.afterSha256 ?? null,
    undoes: record.undoes === undefined ? null : { operation: record.undoes.operationId, seq: record.undoes.seq },
    undone_by: undone.get(keyOf({ operationId: id, seq: record.seq })) ?? null,
  }))
}

/** By change; those beyond the limit say so. */
function differences(
  deps: OwnerDeps,
  session: Session,
  { operations, shown }: { operations: readonly ChangedOperation[]; shown: readonly ChangedOperation[] },
): Map<string, { diff: string; diff_note?: string }> {
  const { dirs } = deps.connections.require(session.connectionId).grant
  const workspace = openWorkspace({ root: session.workspace, mounted: session.mounted, dirs, home: deps.gate.fence })
  const source = { workspace, changes: createSessionChanges(deps.gate, session.ref), operations }
  const found = new Map<string, { diff: string; diff_note?: string }>()
  for (const { id, changes } of shown) {
    for (const record of changes.toReversed()) {
      const key = keyOf({ operationId: id, seq: record.seq })
      if (found.size >= MAX_DIFFS) {
        found.set(key, { diff: '', diff_note: 'Not shown: ask for this operation alone.' })
        continue
      }
      const { diff, note } = diffOfChange(source, { operationId: id, record }, DIFF_CHARS)
      found.set(key, { diff, ...(note === undefined ? {} : { diff_note: note }) })
    }
  }
  return found
}

function nothing(ref: string): KikiError {
  return new KikiError('not_found', `Session ${ref} has no recorded changes.`, {
    hint: 'Changes made by commands are not recorded; in a git workspace, use git.',
  })
}

import { Hono } from 'hono'
import { z } from 'zod'
import { jsonBody } from '../http/json-body.js'
import { changedSessionSchema, newSessionSchema, type Session } from '../sessions/sessions.js'
import { type EndedWorktree, endedWords, type Worktree } from '../sessions/worktrees.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'
import { query } from './query.js'

const listQuery = z.strictObject({
  connection: z.string().optional(),
  status: z.enum(['open', 'closed']).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(100),
  offset: z.coerce.number().int().min(0).default(0),
})

/** `/sessions`: made, changed, closed and deleted by the owner (CL-06, CL-07, SE-14). */
export function sessionRoutes(deps: OwnerDeps) {
  const sessionView = (session: Session) => ({
    ...fields(session),
    // A session of a revoked connection is open, and yet nobody can work in it.
    connection_status: deps.connections.require(session.connectionId).status,
    worktree: worktreeView(deps.worktrees.get(session.workspace)),
  })
  return new Hono<OwnerEnv>()
    .get('/', (c) => {
      const { connection, status, limit, offset } = query(listQuery, c.req.query())
      const found = deps.sessions.list({
        ...(connection === undefined ? {} : { connectionId: connection }),
        ...(status === undefined ? {} : { status }),
        limit: limit + 1,
        offset,
      })
      const next = found.length > limit ? { next_offset: offset + limit } : {}
      return c.json({ sessions: found.slice(0, limit).map(sessionView), ...next }, 200)
    })
    .post('/', jsonBody(newSessionSchema), async (c) =>
      c.json(sessionView(await deps.sessions.create(c.req.valid('json'))), 200),
    )
    .get('/:ref', (c) => {
      const session = deps.sessions.require(c.req.param('ref'))
      const texts = deps.store.savedTexts.ofSession(session.ref).map((text) => ({
        id: text.id,
        kind: text.kind,
        title: text.title,
        text: text.body,
        related_operations: JSON.parse(text.related) as string[],
        source: 'external, unverified' as const,
        created_at: time(text.created_at),
      }))
      return c.json({ ...sessionView(session), saved_texts: texts }, 200)
    })
    .patch('/:ref', jsonBody(changedSessionSchema), async (c) =>
      c.json(sessionView(await deps.sessions.change(c.req.param('ref'), c.req.valid('json'))), 200),
    )
    .post('/:ref/close', async (c) => {
      const { cancelled, worktree } = await deps.lifecycle.closeSession(c.req.param('ref'))
      const view = sessionView(deps.sessions.require(c.req.param('ref')))
      return c.json({ ...view, cancelled, ended_worktree: endedView(worktree) }, 200)
    })
    .delete('/:ref', async (c) => {
      const { worktree } = await deps.lifecycle.deleteSession(c.req.param('ref'))
      return c.json({ deleted: c.req.param('ref'), ended_worktree: endedView(worktree) }, 200)
    })
}

/** Of a session in a git worktree that Kiki made (SE-10). */
function worktreeView(worktree: Worktree | undefined) {
  if (worktree === undefined) return null
  const { repository, branch, madeBranch, filtersOff } = worktree
  return { repository, branch, made_branch: madeBranch, filters_off: filtersOff }
}

function endedView(ended: EndedWorktree | undefined) {
  if (ended === undefined) return null
  const { path, branch, kept, branchRemoved } = ended
  return { path, branch, kept, branch_removed: branchRemoved, says: endedWords(ended) }
}

function fields(session: Session) {
  return {
    session_ref: session.ref,
    connection: session.connectionId,
    title: session.title,
    workspace: session.workspace,
    mode: session.mode,
    profile: session.profile,
    status: session.status,
    created_at: time(session.createdAt),
    last_activity: time(session.lastActivityAt),
  }
}

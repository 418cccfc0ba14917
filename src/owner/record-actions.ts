import type { Context, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { Audit } from '../audit/audit.js'
import type { Detail, Entry } from '../audit/chain.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { isObject } from '../lib/json.js'
import type { Log } from '../lib/log.js'
import type { Store } from '../store/store.js'
import type { OwnerEnv } from './auth.js'

export interface RecordDeps {
  audit: Audit
  store: Pick<Store, 'commits'>
  log: Log
}

const LOGIN = 'POST /api/login'
/** A client's bridge asks for it, not the owner. */
const BRIDGE = 'POST /api/bridge/credential'

/** What a route does, as the log says it; one that has no word here stands there as itself. */
const ACTIONS: Readonly<Record<string, string>> = {
  [LOGIN]: 'owner.signed_in',
  'POST /api/login/codes': 'owner.login_code_made',
  'POST /api/logout': 'owner.signed_out',
  'POST /api/logout/all': 'owner.signed_out_everywhere',
  'POST /api/stop': 'host.stop_asked',
  'POST /api/connections': 'connection.created',
  'PATCH /api/connections/:id': 'connection.changed',
  'POST /api/connections/:id/pause': 'connection.paused',
  'POST /api/connections/:id/resume': 'connection.resumed',
  'POST /api/connections/:id/revoke': 'connection.revoked',
  'DELETE /api/connections/:id': 'connection.deleted',
  'POST /api/sessions': 'session.created',
  'PATCH /api/sessions/:ref': 'session.changed',
  'POST /api/sessions/:ref/close': 'session.closed',
  'DELETE /api/sessions/:ref': 'session.deleted',
  'POST /api/sessions/:ref/undo': 'undo',
  'POST /api/operations/:id/undo': 'undo',
  'POST /api/operations/:id/cancel': 'operation.cancelled',
  'POST /api/processes/:id/stop': 'process.stopped',
  'POST /api/backup': 'backup',
  [BRIDGE]: 'bridge.credential_issued',
}

/**
 * Notes every request that may change something, whatever route it is of: by whom, on what, with what outcome (GU-68). What
 * was done is on disk before its answer leaves; what was refused follows soon. Ids are told apart from all else by their
 * form, so that no secret gets in by standing in the place of one (FC-W01). Mount after the authentication.
 */
export function recordActions({ audit, store, log }: RecordDeps): MiddlewareHandler<OwnerEnv> {
  return async (c, next) => {
    await next()
    const route = routeOf(c)
    if (route === undefined) return
    if (c.res.status >= 400) return isFlood(c, route) ? undefined : audit.appendLazily(refusedEntry(c, route))
    const entry = doneEntry(c, route, await answerOf(c))
    if (route === BRIDGE) return audit.appendLazily(entry)
    try {
      await store.commits.vital(() => audit.append(entry))
    } catch (error) {
      // It was done all the same, and that is what its answer has to say.
      log.error({ action: entry.action, error: messageOf(error) }, "an action of the owner's could not be recorded")
    }
  }
}

/**
 * Anybody on this machine can ask to sign in, and the log is kept for good: only codes that were looked at are noted, of
 * which `createLoginCodes` allows ten wrong ones a minute.
 */
function isFlood(c: Context, route: string): boolean {
  return route === LOGIN && c.res.status !== 401
}

/** The route's own words, such as `POST /api/connections/:id/pause`; undefined for what only reads, or is no route. */
function routeOf(c: Context): string | undefined {
  const { method } = c.req
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return undefined
  const path = matchedRoutes(c).findLast((route) => route.method === method)?.path
  return path === undefined ? undefined : `${method} ${path}`
}

function doneEntry(c: Context<OwnerEnv>, route: string, answer: Record<string, unknown>): Entry {
  const body = bodyOf(c)
  const ids = idsIn(c.req.path.split('/'), Object.values(answer), Object.values(body))
  // Of a change, what was named; what was left out of a new thing has its default here already.
  const changed = c.req.method === 'PATCH' ? Object.keys(body) : []
  const fields = changed.filter((name) => /^[a-z_]{1,40}$/.test(name) && body[name] !== undefined)
  const detail: Detail = {
    ...wayOf(c),
    ...(ACTIONS[route] === undefined ? { route } : {}),
    ...(fields.length === 0 ? {} : { fields: fields.join(',') }),
    ...(body.dry_run === true ? { dry_run: true } : {}),
    ...(typeof answer.changed === 'boolean' ? { changed: answer.changed } : {}),
  }
  const actor = route === BRIDGE ? (ids.connection ?? 'unknown') : 'owner'
  return { actor, action: ACTIONS[route] ?? 'owner.request', ...ids, status: 'done', detail }
}

function refusedEntry(c: Context<OwnerEnv>, route: string): Entry {
  const code = c.error instanceof KikiError ? c.error.code : undefined
  const signIn = route === LOGIN
  return {
    actor: signIn ? 'unknown' : route === BRIDGE ? 'bridge' : 'owner',
    action: signIn ? 'owner.sign_in_refused' : 'owner.refused',
    ...idsIn(c.req.path.split('/')),
    status: 'refused',
    errorCode: code ?? (c.res.status < 500 ? 'permission_denied' : 'internal_error'),
    detail: { ...wayOf(c), route, http_status: c.res.status },
  }
}

function wayOf(c: Context<OwnerEnv>): { via?: string } {
  // A sign-in is of nobody yet: the middleware before let it through without asking who it is.
  const owner = c.get('owner') as OwnerEnv['Variables']['owner'] | undefined
  return owner === undefined ? {} : { via: owner.kind }
}

/** As `newId` makes them; a token, a code or a name never looks so. */
const ID = /^(client|ext|op)_[0-9a-z]{10}[A-Za-z0-9_-]{16}$/
const FIELDS: Readonly<Record<string, 'connection' | 'session' | 'operation'>> = {
  client: 'connection',
  ext: 'session',
  op: 'operation',
}

/** The first id of each kind. */
function idsIn(...places: (readonly unknown[])[]): Pick<Entry, 'connection' | 'session' | 'operation'> {
  const found: Pick<Entry, 'connection' | 'session' | 'operation'> = {}
  for (const value of places.flat()) {
    const kind = typeof value === 'string' ? ID.exec(value)?.[1] : undefined
    const field = kind === undefined ? undefined : FIELDS[kind]
    if (field !== undefined) found[field] ??= String(value)
  }
  return found
}

/** What `jsonBody` has read. */
function bodyOf(c: Context): Record<string, unknown> {
  const body: unknown = c.req.valid('json' as never)
  return isObject(body) ? body : {}
}

async function answerOf(c: Context): Promise<Record<string, unknown>> {
  if (!/^application\/json\b/.test(c.res.headers.get('content-type') ?? '')) return {}
  const answer: unknown = await c.res.clone().json()
  return isObject(answer) ? answer : {}
}

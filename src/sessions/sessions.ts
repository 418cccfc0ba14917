import { basename } from 'node:path'
import { z } from 'zod'
import type { Connection, Connections } from '../grants/connections.js'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { lesserMode, MODES, type Mode, parseMode } from '../policy/modes.js'
import type { SessionRow } from '../store/sessions.js'
import type { Store } from '../store/store.js'
import type { HomeFence } from '../workspace/fence.js'
import { bindWorkspace, isMountPoint, openWorkspace } from '../workspace/workspace.js'
import type { Worktrees } from './worktrees.js'

/** What a profile sets below its connection's grant; units as there (GR-06). */
export interface ProfileLimits {
  wait_ms?: number
  inline_text_limit?: number
  inline_media_limit?: number
  /** Calls of one session that run at once. */
  concurrency?: number
  /** Calls of one session in a minute. */
  rate?: number
}

/** A named preset for sessions (GR-06). */
export interface Profile {
  mode?: Mode
  limits?: ProfileLimits
  /** Tool families or names; narrows what the connection shares. */
  tools?: readonly string[]
  instructions?: string
}

/** One conversation, bound to a connection and a workspace. */
export interface Session {
  ref: string
  connectionId: string
  title: string
  /** Real path, made canonical when the session was made (SE-09). */
  workspace: string
  /** Whether a disk was mounted just there then: without it the folder is another one. */
  mounted: boolean
  mode: Mode
  profile: string | null
  status: SessionRow['status']
  createdAt: number
  lastActivityAt: number
}

export const newSessionSchema = z.strictObject({
  connection: z.string(),
  workspace: z.string().min(1),
  mode: z.string().optional(),
  profile: z.string().optional(),
  title: z.string().trim().min(1).max(200).optional(),
  /** A branch: the session works in a git worktree on it, made of the workspace (SE-10). */
  worktree: z.string().min(1).max(200).optional(),
})

export const changedSessionSchema = z.strictObject({
  title: z.string().trim().min(1).max(200).optional(),
  mode: z.string().optional(),
})

/** Who makes a call, as far as sessions care. */
export interface SessionCaller {
  connectionId: string
  /** What an attachment belongs to: `bridge:ID`, `mcp:ID`, or `grant` for a stateless client (design §7). */
  holder: string
  /** Named by `kiki mcp --session`. */
  fixedSession?: string | undefined
}

export type Sessions = ReturnType<typeof createSessions>

interface Deps {
  store: Store
  clock: Clock
  connections: Connections
  profiles: () => Record<string, Profile>
  fence: HomeFence
  worktrees: Pick<Worktrees, 'make' | 'release'>
}

export function createSessions({ store, clock, connections, profiles, fence, worktrees }: Deps) {
  function get(ref: string): Session | undefined {
    const row = store.sessions.get(ref)
    return row === undefined ? undefined : fromRow(row)
  }

  function require(ref: string): Session {
    const session = get(ref)
    if (session === undefined) {
      throw new KikiError('not_found', `There is no session ${ref}.`, { hint: 'List them with `kiki sessions list`.' })
    }
    return session
  }

  /** The session's profile from the configuration, if it has one. @throws KikiError where it is not there any more. */
  function profileOf(session: Session): Profile | undefined {
    if (session.profile === null) return undefined
    const profile = profiles()[session.profile]
    if (profile === undefined) {
      throw new KikiError(
        'session_unavailable',
        `The session's profile "${session.profile}" is no longer configured.`,
        {
          hint: 'The owner can put [profiles] back into config.toml or make another session.',
        },
      )
    }
    return profile
  }

  /** As `profileOf`, for what must go on without: undefined where the profile is not there any more. */
  function knownProfileOf(session: Session | undefined): Profile | undefined {
    return session === undefined || session.profile === null ? undefined : profiles()[session.profile]
  }

  /** A session of this connection, or one and the same refusal for unknown, foreign and deleted refs (SE-04, GU-13). */
  function ofConnection(connectionId: string, ref: string): Session {
    const session = get(ref)
    if (session === undefined || session.connectionId !== connectionId) {
      throw new KikiError('session_unavailable', 'There is no such session for this connection.', {
        hint: 'Call kiki_session with {"action":"list"} to see the sessions that are shared with you.',
      })
    }
    return session
  }

  /** Another session like this one, in its very folder: not in another that took its place (SE-06, SE-09). */
  async function createLike(from: Session): Promise<Session> {
    openWorkspace({ root: from.workspace, mounted: from.mounted, dirs: [], home: fence })
    return create({
      connection: from.connectionId,
      workspace: from.workspace,
      mode: lesserMode(from.mode, connections.require(from.connectionId).grant.ceiling),
      title: from.title,
      ...(from.profile === null ? {} : { profile: from.profile }),
    })
  }

  async function create(input: z.output<typeof newSessionSchema>): Promise<Session> {
    const connection = connections.require(input.connection)
    if (connection.status === 'revoked') {
      throw new KikiError('connection_revoked', `Connection ${connection.id} is revoked; it cannot have a new session.`)
    }
    const profile = input.profile === undefined ? undefined : knownProfile(profiles(), input.profile)
    const mode = modeWithin(connection, input.mode ?? profile?.mode)
    if (input.worktree === undefined) return insert(input, mode, bindWorkspace(input.workspace, fence))
    const path = await worktrees.make(input.workspace, input.worktree)
    try {
      return await insert(
        { ...input, title: input.title ?? `${basename(input.workspace)} (${input.worktree})`.slice(0, 200) },
        mode,
        path,
      )
    } catch (error) {
      await worktrees.release(path)
      throw error
    }
  }

  async function insert(input: z.output<typeof newSessionSchema>, mode: Mode, workspace: string): Promise<Session> {
    const ref = newId('ext', clock.now())
    await store.commits.durable(() =>
      store.sessions.insert({
        ref,
        connection_id: input.connection,
        title: input.title ?? basename(workspace),
        workspace,
        mounted: isMountPoint(workspace) ? 1 : 0,
        mode,
        profile: input.profile ?? null,
        created_at: clock.now(),
      }),
    )
    return require(ref)
  }

  return {
    get,
    require,
    ofConnection,
    profileOf,
    knownProfileOf,
    create,
    createLike,
    count: () => store.sessions.count(),
    list: (filter: {
      connectionId?: string
      status?: SessionRow['status']
      limit: number
      offset: number
    }): Session[] => store.sessions.list(filter).map(fromRow),

    /** Renames or re-modes a session, within its connection's ceiling (SE-14). */
    async change(ref: string, change: z.output<typeof changedSessionSchema>): Promise<Session> {
      await store.commits.durable(() => {
        const session = require(ref)
        const mode =
          change.mode === undefined ? session.mode : modeWithin(connections.require(session.connectionId), change.mode)
        store.sessions.update(ref, { title: change.title ?? session.title, mode })
      })
      return require(ref)
    },

    /** The session that a call works in: named by the call, by the bridge, or the one that the caller is attached to. */
    resolve(caller: SessionCaller, ref: string | undefined): Session {
      const session = ofConnection(caller.connectionId, ref ?? caller.fixedSession ?? onlyAttached(store, caller))
      if (session.status === 'closed') {
        throw new KikiError('session_closed', `Session ${session.ref} is closed.`, {
          hint: 'Call kiki_session with {"action":"list"} for the open ones, or ask the owner for a new one.',
        })
      }
      return session
    },

    async attach(caller: SessionCaller, ref: string): Promise<void> {
      await store.commits.durable(() => store.attachments.attach(caller.connectionId, caller.holder, ref, clock.now()))
    },

    /** Refs that this caller is attached to; with `--session` that one too. */
    attachedTo(caller: SessionCaller): string[] {
      const refs = store.attachments.ofHolder(caller.connectionId, caller.holder)
      const fixed = caller.fixedSession === undefined ? undefined : get(caller.fixedSession)
      if (fixed?.status === 'open' && fixed.connectionId === caller.connectionId && !refs.includes(fixed.ref)) {
        refs.push(fixed.ref)
      }
      return refs
    },

    /** Refs that anyone of this connection is attached to: what a stateless client's catalog is made of (design §7). */
    attachedToGrant: (connectionId: string): string[] => store.attachments.ofConnection(connectionId),

    /** Notes that it was used; written at most once a second, with the next commit. */
    touch({ ref, lastActivityAt }: Session): void {
      const now = clock.now()
      if (now - lastActivityAt < 1000 && now >= lastActivityAt) return
      store.commits.lazy(() => store.sessions.touch(ref, now))
    },

    detach: (connectionId: string, holder: string): Promise<void> =>
      store.commits.quick(() => store.attachments.detachHolder(connectionId, holder)),

    /** Forgets the attachments of every holder of one kind (`bridge`) but those. */
    keepHolders: (kind: string, kept: ReadonlySet<string>): Promise<void> =>
      store.commits.quick(() => store.attachments.keepHolders(kind, kept)),
  }
}

function onlyAttached(store: Store, caller: SessionCaller): string {
  const refs = caller.holder === 'grant' ? [] : store.attachments.ofHolder(caller.connectionId, caller.holder)
  const only = refs[0]
  if (only !== undefined && refs.length === 1) return only
  const why = refs.length > 1 ? `${refs.length} sessions are attached` : 'No session is named'
  throw new KikiError('session_required', `${why}, so it is not clear which one this call is for.`, {
    hint: 'Put the reference into _kiki.session_ref. Call kiki_session with {"action":"list"} to see the sessions, then {"action":"resume","session_ref":"…"}.',
  })
}

function modeWithin(connection: Connection, wanted: string | undefined): Mode {
  if (wanted === undefined) return connection.grant.ceiling
  const mode = parseMode(wanted)
  if (mode === undefined) {
    throw new KikiError('invalid_arguments', `"${wanted}" is not a mode.`, { hint: `Modes are ${MODES.join(', ')}.` })
  }
  if (lesserMode(mode, connection.grant.ceiling) !== mode) {
    throw new KikiError(
      'permission_denied',
      `Mode ${mode} is above the connection's ceiling ${connection.grant.ceiling}.`,
      {
        hint: `Raise it first: kiki connections set ${connection.id} --ceiling ${mode}`,
      },
    )
  }
  return mode
}

function knownProfile(profiles: Record<string, Profile>, name: string): Profile {
  const profile = profiles[name]
  if (profile !== undefined) return profile
  const known = Object.keys(profiles)
  throw new KikiError('not_found', `There is no profile "${name}".`, {
    hint: known.length > 0 ? `Profiles are ${known.join(', ')}.` : `Add [profiles.${name}] to config.toml.`,
  })
}

function fromRow(row: SessionRow): Session {
  return {
    ref: row.ref,
    connectionId: row.connection_id,
    title: row.title,
    workspace: row.workspace,
    mounted: row.mounted === 1,
    mode: parseMode(row.mode) ?? 'read-only',
    profile: row.profile,
    status: row.status,
    createdAt: row.created_at,
    lastActivityAt: row.last_activity_at,
  }
}

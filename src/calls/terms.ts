import type { Connection } from '../grants/connections.js'
import type { Lane } from '../operations/slots.js'
import type { Profile, Session } from '../sessions/sessions.js'
import type { HomeFence } from '../workspace/fence.js'
import { openWorkspace, type Workspace } from '../workspace/workspace.js'
import type { RateLimit } from './rate.js'

/** A connection as one session may use it: the limits of its profile narrow the grant, never widen it (GR-06). */
export function narrowed(connection: Connection, profile: Profile | undefined): Connection {
  const limits = profile?.limits
  if (limits === undefined) return connection
  const { grant } = connection
  const least = (granted: number, limit: number | undefined) => Math.min(granted, limit ?? granted)
  return {
    ...connection,
    grant: {
      ...grant,
      wait_ms: least(grant.wait_ms, limits.wait_ms),
      max_wait_ms: least(grant.max_wait_ms, limits.wait_ms),
      inline_text_limit: least(grant.inline_text_limit, limits.inline_text_limit),
      inline_media_limit: least(grant.inline_media_limit, limits.inline_media_limit),
    },
  }
}

/** What a call is counted among while it runs: all of its connection, and all of its session. */
export function lanesOf(connection: Connection, session: Session, profile: Profile | undefined): Lane[] {
  return [
    { key: connection.id, cap: connection.grant.concurrency },
    { key: session.ref, cap: profile?.limits?.concurrency ?? null },
  ]
}

/** Counts a call against the connection's rate and, within it, its session's. @throws KikiError `rate_limited`. */
export function countCall(
  rate: RateLimit,
  connection: Connection,
  session: Session,
  profile: Profile | undefined,
): void {
  rate.count(connection.id, connection.grant.rate, 'connection.rate')
  rate.count(session.ref, profile?.limits?.rate ?? null, `profiles.${session.profile}.limits.rate`)
}

/** The session's folder and what else the connection may touch, as they are now. @throws KikiError as `openWorkspace`. */
export function workspaceOf(deps: { fence: HomeFence }, connection: Connection, session: Session): Workspace {
  return openWorkspace({
    root: session.workspace,
    mounted: session.mounted,
    dirs: connection.grant.dirs,
    home: deps.fence,
  })
}

import type { Connection } from '../grants/connections.js'
import { shares } from '../grants/grant.js'
import type { Profile, Session } from '../sessions/sessions.js'
import { CATALOG } from '../tools/catalog.js'
import { definitionOf, type ToolDefinition } from '../tools/schema.js'
import type { Tool } from '../tools/tool.js'

/** Whether a session's calls may use a tool: shared by the connection, and not narrowed away by the profile (GR-06). */
export function isShared(
  tool: Pick<Tool, 'name' | 'family'>,
  connection: Connection,
  profile: Profile | undefined,
): boolean {
  if (!shares(connection.grant, tool)) return false
  return profile?.tools === undefined || profile.tools.some((name) => name === tool.name || name === tool.family)
}

/** The native tools that a connection shares in a session. */
export function sharedTools(connection: Connection, profile: Profile | undefined): Tool[] {
  return CATALOG.filter((tool) => isShared(tool, connection, profile))
}

/** What this caller sees besides the control tools: the union of what its attached sessions share (SE-02, design §7). */
export function visibleTools(
  connection: Connection,
  attached: readonly Session[],
  profileOf: (session: Session) => Profile | undefined,
): ToolDefinition[] {
  const profiles = attached.map(profileOf)
  return CATALOG.filter((tool) => profiles.some((profile) => isShared(tool, connection, profile))).map((tool) =>
    definitionOf(tool, connection.grant.idempotency === 'required'),
  )
}

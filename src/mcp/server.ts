import { CLIENT_INFO_META_KEY, type ProgressNotificationParams, Server } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Caller } from '../calls/caller.js'
import { authenticate } from '../calls/steps.js'
import { CONTROL_TOOLS, type ControlDeps } from '../control/control.js'
import { visibleTools } from '../exposure/catalog.js'
import { KikiError } from '../lib/errors.js'
import type { ToolDefinition } from '../tools/schema.js'
import { INSTRUCTIONS } from './instructions.js'
import { serveCall } from './serve-call.js'

export interface ServerDeps extends ControlDeps {
  version: string
}

type Era = 'legacy' | 'modern'

/** What a transport knows of its caller before any request. */
export interface Principal {
  connectionId: string
  /** What a 2025-era client's attachments belong to; a 2026-era client's belong to the grant (design §7). */
  holder: string
  fixedSession?: string | undefined
}

/** One MCP server instance for one connection of one client, in either protocol era. */
export function createServer(deps: ServerDeps, principal: Principal, era: Era): Server {
  const server = new Server(
    { name: 'kiki', title: 'Kiki', version: deps.version },
    { capabilities: { tools: { listChanged: true } }, instructions: INSTRUCTIONS },
  )
  const caller = callerOf(principal, era)

  server.setRequestHandler('tools/list', async () => ({ tools: listTools(deps, caller, era) }))

  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const envelope: Record<string, unknown> = mcpReq.envelope ?? {}
    const client = clientInfo(envelope[CLIENT_INFO_META_KEY] ?? server.getClientVersion())
    const fields = { name: params.name, arguments: params.arguments, progressToken: mcpReq._meta?.progressToken }
    const notify = (progress: Record<string, unknown>) =>
      mcpReq.notify({ method: 'notifications/progress', params: progress as ProgressNotificationParams })
    return { ...(await serveCall(deps, { ...caller, client }, fields, { signal: mcpReq.signal, notify })) }
  })

  const unsubscribe = deps.events.on('catalog.changed', ({ connectionId, holder }) => {
    if (connectionId !== principal.connectionId) return
    if (era === 'legacy' && holder !== undefined && holder !== caller.holder) return
    server
      .sendToolListChanged()
      .catch((error: unknown) => deps.log.debug({ error: String(error) }, 'list_changed was not delivered'))
  })
  server.onclose = unsubscribe
  return server
}

const clientInfoSchema = z.object({ name: z.string().max(200), version: z.string().max(100) })

/** The client application as it names itself, if it does so in the form that MCP asks for. */
export function clientInfo(given: unknown): Caller['client'] {
  const info = clientInfoSchema.safeParse(given)
  return info.success ? info.data : undefined
}

export function callerOf({ connectionId, holder, fixedSession }: Principal, era: Era): Caller {
  return { connectionId, holder: era === 'legacy' ? holder : 'grant', fixedSession }
}

/**
 * The three control tools, and those that the caller's attached sessions share; for a stateless 2026-era client those
 * that any attached session of the grant shares (SE-02, SE-05).
 */
export function listTools(deps: ServerDeps, caller: Caller, era: Era): ToolDefinition[] {
  const control = CONTROL_TOOLS.map((tool) => tool.definition)
  try {
    const connection = authenticate(deps, caller)
    const refs = new Set(deps.sessions.attachedTo(caller))
    if (era === 'modern') for (const ref of deps.sessions.attachedToGrant(connection.id)) refs.add(ref)
    // A session whose profile is not configured any more shares nothing; the others stay.
    const attached = [...refs]
      .map((ref) => deps.sessions.ofConnection(connection.id, ref))
      .filter((session) => session.profile === null || deps.sessions.knownProfileOf(session) !== undefined)
    return [...control, ...visibleTools(connection, attached, deps.sessions.profileOf)]
  } catch (error) {
    if (error instanceof KikiError) return control
    throw error
  }
}

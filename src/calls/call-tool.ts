import type { Connection, Connections } from '../grants/connections.js'
import type { Clock } from '../lib/clock.js'
import type { Reply } from '../lib/content.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { Log } from '../lib/log.js'
import { type Live, tellProgress } from '../operations/live.js'
import { limitsOf, type Operations, type Work } from '../operations/operations.js'
import { refusal } from '../operations/present.js'
import { decide } from '../policy/decide.js'
import { parseMode } from '../policy/modes.js'
import type { Processes } from '../processes/processes.js'
import type { Session, Sessions } from '../sessions/sessions.js'
import type { OperationRow } from '../store/operations.js'
import type { Tool } from '../tools/tool.js'
import type { HomeFence } from '../workspace/fence.js'
import { createJournal } from '../workspace/journal.js'
import type { Workspace } from '../workspace/workspace.js'
import { openWorkspace } from '../workspace/workspace.js'
import type { Caller, ToolRequest } from './caller.js'
import type { RateLimit } from './rate.js'
import {
  authenticate,
  checkProfile,
  findTool,
  inlineWait,
  mustBeAllowed,
  type ParsedCall,
  parseArguments,
} from './steps.js'

export interface GateDeps {
  connections: Connections
  sessions: Sessions
  operations: Operations
  processes: Processes
  rate: RateLimit
  clock: Clock
  log: Log
  /** Kiki's home, fenced off from every tool (PA-03). */
  fence: HomeFence
  /** Where earlier content of changed files is kept. */
  changesFolder: string
}

/** The one gate: every tool that runs, runs through here (design §5). */
export async function callTool(deps: GateDeps, caller: Caller, request: ToolRequest): Promise<Reply> {
  try {
    const connection = authenticate(deps, caller)
    const tool = findTool(connection, request.name)
    const call = parseArguments(tool, connection, request.arguments)
    const session = deps.sessions.resolve(caller, call.control.session_ref)
    const workspace = workspaceOf(deps, connection, session)
    const decision = decideFor(deps, tool, connection, session)
    mustBeAllowed(decision)
    deps.rate.count(connection.id, connection.grant.rate)
    const claim = await deps.operations.claim({
      connection,
      session,
      tool: tool.name,
      effect: tool.effect,
      args: call.raw,
      key: call.control.idempotency_key,
      client: caller.client,
      decision,
    })
    if (claim.kind === 'over') return deps.operations.replay(claim.row, limitsOf(connection))
    if (claim.kind === 'new') {
      deps.sessions.touch(session.ref)
      void deps.operations.run(
        claim.live,
        connection.grant.concurrency,
        workOf(deps, tool, call.args, workspace, connection),
      )
    }
    return await follow(deps, claim.live, connection, call, request)
  } catch (error) {
    return refused(deps, request.name, error)
  }
}

/** The lower half of the gate, for an operation that was accepted earlier: a late approval, or one left by a dead host. */
export async function runClaimed(deps: GateDeps, row: OperationRow): Promise<void> {
  const connection = deps.connections.require(row.connection_id)
  const live = deps.operations.adopt(row, limitsOf(connection))
  await deps.operations.run(live, connection.grant.concurrency, (running) => {
    authenticate(deps, { connectionId: connection.id, holder: 'recovery' })
    const tool = findTool(connection, row.tool)
    const args = tool.input.parse(JSON.parse(row.arguments))
    const session = deps.sessions.require(row.session_ref)
    mustBeAllowed(decideFor(deps, tool, connection, session))
    return workOf(deps, tool, args, workspaceOf(deps, connection, session), connection)(running)
  })
}

function workspaceOf(deps: GateDeps, connection: Connection, session: Session): Workspace {
  return openWorkspace({ root: session.workspace, dirs: connection.grant.dirs, home: deps.fence })
}

function decideFor(deps: GateDeps, tool: Tool, connection: Connection, session: Session) {
  const profile = deps.sessions.profileOf(session)
  checkProfile(tool, connection, profile)
  const profileMode = profile?.mode === undefined ? undefined : parseMode(profile.mode)
  return decide({
    tool,
    ceiling: connection.grant.ceiling,
    sessionMode: session.mode,
    ...(profileMode === undefined ? {} : { profileMode }),
  })
}

/** The tool's own run, with what it may use. */
function workOf(deps: GateDeps, tool: Tool, args: unknown, workspace: Workspace, connection: Connection): Work {
  return async (live) => {
    live.journal = createJournal({ dir: deps.changesFolder, operationId: live.id })
    const context = {
      operationId: live.id,
      workspace,
      journal: live.journal,
      processes: deps.processes,
      signal: live.controller.signal,
      progress: (message: string) => tellProgress(live, message),
      limits: { inlineText: connection.grant.inline_text_limit },
    }
    return tool.run(context, args)
  }
}

/** Waits for the end within the inline wait; a plain read whose caller went away is stopped (OP-12, GU-20). */
async function follow(
  deps: GateDeps,
  live: Live,
  connection: Connection,
  call: ParsedCall,
  request: ToolRequest,
): Promise<Reply> {
  const { signal, onProgress } = request
  const stop = () => {
    if (live.effect === 'read' && live.key === null)
      void deps.operations.cancel(live.id, 'The caller cancelled the request.')
  }
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  if (onProgress !== undefined) live.listeners.add(onProgress)
  try {
    const reply = await deps.operations.answer(
      live,
      inlineWait(connection, call.control.wait_ms),
      limitsOf(connection),
      signal,
    )
    return call.keyMade ? withoutReplay(reply) : reply
  } finally {
    signal?.removeEventListener('abort', stop)
    if (onProgress !== undefined) live.listeners.delete(onProgress)
  }
}

/** The result of a call whose key Kiki made says that a retry would run again (spec/control.md, "Shapes"). */
function withoutReplay(reply: Reply): Reply {
  const note = 'No idempotency key was given: a retry of this call would run again.'
  return { ...reply, content: [...reply.content, { type: 'text', text: note }] }
}

/** Every refusal in one place; anything that is not a KikiError is a bug and is logged with its id. */
export function refused({ log }: { log: Log }, tool: string, error: unknown): Reply {
  if (error instanceof KikiError) return refusal(error)
  const bug = newId('op').slice(-8)
  log.error(
    { tool, bug, error: error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error) },
    'a call failed by a bug',
  )
  return refusal(new KikiError('internal_error', `Kiki failed (log entry ${bug}); nothing was started.`))
}

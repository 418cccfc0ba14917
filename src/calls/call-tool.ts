import type { Approvals } from '../approvals/approvals.js'
import type { Audit } from '../audit/audit.js'
import type { Config } from '../config/schema.js'
import type { Connection } from '../grants/connections.js'
import type { StandingRules } from '../grants/standing-rules.js'
import type { Reply } from '../lib/content.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { Log } from '../lib/log.js'
import { createSessionChanges } from '../operations/changes.js'
import { type Live, tellProgress } from '../operations/live.js'
import { limitsOf, type Operations, type Work } from '../operations/operations.js'
import { type Outcome, openPart } from '../operations/outcome.js'
import { refusal } from '../operations/present.js'
import type { Processes } from '../processes/processes.js'
import type { Sessions } from '../sessions/sessions.js'
import type { OperationRow } from '../store/operations.js'
import type { Store } from '../store/store.js'
import type { Shell } from '../tools/shell/shell.js'
import type { Tool, ToolContext } from '../tools/tool.js'
import type { HomeFence } from '../workspace/fence.js'
import { createJournal } from '../workspace/journal.js'
import type { Caller, ToolRequest } from './caller.js'
import { needsNetwork, type Scripts, scriptOf, withConfinement } from './command.js'
import { type JudgeInput, judge } from './judge.js'
import type { RateLimit } from './rate.js'
import {
  type AuthenticateDeps,
  asksNow,
  authenticate,
  findTool,
  inlineWait,
  mustBeAsConfined,
  mustLeadThere,
  mustNotBeDenied,
  type ParsedCall,
  parseArguments,
  withoutReplay,
} from './steps.js'
import { countCall, lanesOf, narrowed, workspaceOf } from './terms.js'

export interface GateDeps extends AuthenticateDeps {
  store: Store
  sessions: Sessions
  operations: Operations
  processes: Processes
  shell: Shell
  rate: RateLimit
  rules: StandingRules
  approvals: Approvals
  scripts: Scripts
  /** As it is now: it may be read again. */
  config: () => Config
  audit: Pick<Audit, 'recordRefusal'>
  log: Log
  /** Kiki's home, fenced off from every tool (PA-03). */
  fence: HomeFence
  /** Where earlier content of changed files is kept. */
  changesFolder: string
  /** For short-lived private files of tools. */
  scratch: string
}

/** The one gate: every tool that runs, runs through here (design §5). */
export async function callTool(deps: GateDeps, caller: Caller, request: ToolRequest): Promise<Reply> {
  const seen: Seen = { connectionId: caller.connectionId, called: request.name }
  try {
    const granted = authenticate(deps, caller)
    const tool = findTool(granted, request.name)
    seen.tool = tool.name
    const call = parseArguments(tool, granted, request.arguments)
    const session = deps.sessions.resolve(caller, call.control.session_ref)
    seen.sessionRef = session.ref
    const profile = deps.sessions.profileOf(session)
    const connection = narrowed(granted, profile)
    const workspace = workspaceOf(deps, connection, session)
    const script = await scriptOf(deps.scripts, tool, call.args)
    const judged = judge(deps, {
      ...{ tool, args: call.args, script, connection, session, profile, workspace },
    })
    mustNotBeDenied(judged.decision)
    const decision = await withConfinement(deps.shell, tool, connection.grant, judged.decision)
    const question = judged.question && { ...judged.question, decision }
    countCall(deps.rate, connection, session, profile)
    const claim = await deps.operations.claim({
      connection,
      session,
      tool: tool.name,
      effect: tool.effect,
      args: call.raw,
      key: call.control.idempotency_key,
      client: caller.client,
      decision,
      lanes: lanesOf(connection, session, profile),
      ...(question === undefined ? {} : { ask: (row) => deps.approvals.ask(row, question).id }),
    })
    deps.connections.touch(connection)
    if (claim.kind === 'over') return deps.operations.replay(claim.row, limitsOf(connection))
    if (claim.kind === 'new') {
      deps.sessions.touch(session)
      start(deps, claim.live, workOf(deps, { tool, args: call.args, script, workspace, connection }))
    }
    return await follow(deps, claim.live, connection, call, request)
  } catch (error) {
    return refused(deps, seen, error)
  }
}

/** Runs a claimed operation now; one that waits for its turn decides again then, and one that waits for the owner is run by the answer. */
function start(deps: GateDeps, live: Live, work: Work): void {
  const { row } = live
  if (row.status === 'waiting_approval') deps.approvals.asked(row)
  else void deps.operations.run(live, row.status === 'accepted' ? decidedAgain(deps, row) : work)
}

/** The lower half of the gate, for an operation that was accepted earlier: a late approval, or one left by a dead host. */
export async function runClaimed(deps: GateDeps, row: OperationRow): Promise<void> {
  await deps.operations.run(adopt(deps, row), decidedAgain(deps, row))
}

/** Makes an operation that waits known to this host, so that it can be waited for (GU-05). */
export function adopt(deps: GateDeps, row: OperationRow): Live {
  const session = deps.sessions.require(row.session_ref)
  const profile = deps.sessions.knownProfileOf(session)
  const connection = narrowed(deps.connections.require(row.connection_id), profile)
  return deps.operations.adopt(row, {
    limits: limitsOf(connection),
    lanes: lanesOf(connection, session, profile),
  })
}

/**
 * A tool that the owner runs in a session, recorded as an operation of it with the decision `owner` and no client. The
 * owner stands above ceiling, mode, pause and revoke, and may undo what was done in a session that is closed.
 * @throws KikiError as the session's folder and the arguments ask for; how the tool itself ended is in the outcome.
 */
export async function callAsOwner(
  deps: GateDeps,
  sessionRef: string,
  tool: Tool,
  given: Record<string, unknown>,
): Promise<{ operationId: string; outcome: Outcome }> {
  const session = deps.sessions.require(sessionRef)
  const connection = deps.connections.require(session.connectionId)
  const args = tool.input.parse(given)
  const workspace = workspaceOf(deps, connection, session)
  const claim = await deps.operations.claim({
    connection,
    session,
    tool: tool.name,
    effect: tool.effect,
    args: given,
    key: undefined,
    client: undefined,
    decision: { kind: 'allow', by: 'owner', reason: 'The owner asked for it.' },
    byOwner: true,
    lanes: [],
  })
  if (claim.kind !== 'new') throw new Error('a call without a key is new')
  await deps.operations.run(claim.live, workOf(deps, { tool, args, script: undefined, workspace, connection }))
  return { operationId: claim.live.id, outcome: await claim.live.ended.promise }
}

/**
 * The work of a call that had to wait: it begins only if the call would be allowed now as well (GU-02). What the owner approved
 * need not be asked about again; a denial stands above an approval.
 */
function decidedAgain(
  deps: GateDeps,
  row: Pick<OperationRow, 'connection_id' | 'session_ref' | 'tool' | 'arguments' | 'approval_id' | 'decision'>,
) {
  return async (live: Live) => {
    const granted = authenticate(deps, { connectionId: row.connection_id, holder: 'queue' })
    const tool = findTool(granted, row.tool)
    const args = tool.input.parse(JSON.parse(row.arguments))
    const session = deps.sessions.require(row.session_ref)
    const profile = deps.sessions.profileOf(session)
    const connection = narrowed(granted, profile)
    const workspace = workspaceOf(deps, connection, session)
    const script = await scriptOf(deps.scripts, tool, args)
    const { decision, places } = judge(deps, { tool, args, script, connection, session, profile, workspace })
    mustNotBeDenied(decision)
    mustLeadThere(deps.approvals.placesOf(row), places)
    if (decision.kind === 'ask' && row.approval_id === null) throw asksNow(decision)
    mustBeAsConfined(row, await withConfinement(deps.shell, tool, connection.grant, decision))
    return workOf(deps, { tool, args, script, workspace, connection })(live)
  }
}

/** What was decided about, and may run. */
type AllowedCall = Pick<JudgeInput, 'tool' | 'args' | 'script' | 'workspace' | 'connection'> & { tool: Tool }

/** The tool's own run, with what it may use. */
function workOf(deps: GateDeps, { tool, args, script, workspace, connection }: AllowedCall): Work {
  return async (live) => {
    live.journal = createJournal({ dir: deps.changesFolder, operationId: live.id })
    const context = {
      operationId: live.id,
      workspace,
      journal: live.journal,
      changes: createSessionChanges(deps, live.sessionRef),
      processes: deps.processes,
      session: { ref: live.sessionRef, connectionId: connection.id, policyVersion: connection.policyVersion },
      grant: connection.grant,
      needsNetwork: script !== undefined && needsNetwork(script),
      shell: deps.shell,
      signal: live.controller.signal,
      progress: (message: string) => tellProgress(live, message),
      limits: { inlineText: connection.grant.inline_text_limit, inlineMedia: connection.grant.inline_media_limit },
      scratch: deps.scratch,
      savedPart: (id: string, part: number) => savedPart(deps, live, id, part),
    }
    return tool.run(context, args)
  }
}

/** What an operation of the same connection and session has saved; nothing else is to be had (GU-13). */
function savedPart(deps: GateDeps, live: Live, id: string, part: number): ReturnType<ToolContext['savedPart']> {
  const row = deps.store.operations.get(id)
  if (row === undefined || row.result === null) return undefined
  if (row.connection_id !== live.connectionId || row.session_ref !== live.sessionRef) return undefined
  const saved = openPart(deps.operations.sources, { id, result: row.result }, part)
  return saved?.kind === 'media' ? { length: saved.length, read: saved.bytes } : undefined
}

/** Waits for the end within the inline wait; a plain read whose caller went away is stopped (OP-12, GU-20). */
async function follow(
  deps: GateDeps,
  live: Live,
  connection: Connection,
  call: ParsedCall,
  request: ToolRequest,
): Promise<Reply> {
  const { signal } = request
  const stop = () => {
    if (live.effect !== 'read' || live.key !== null) return
    deps.operations
      .cancel(live.id, 'The caller cancelled the request.')
      .catch((error: unknown) =>
        deps.log.error({ operation: live.id, error: messageOf(error) }, 'a call could not be cancelled'),
      )
  }
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const reply = await deps.operations.answer(
      live,
      inlineWait(connection, call.control.wait_ms),
      limitsOf(connection),
      request,
    )
    return call.keyMade ? withoutReplay(reply) : reply
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/** What is known of a call by the time it is refused. */
export interface Seen {
  connectionId: string
  /** As the client named the tool. */
  called: string
  tool?: string
  sessionRef?: string
}

/** Every refusal in one place, with its entry in the audit log; anything that is not a KikiError is a bug and is logged with its id. */
export function refused(
  { log, audit }: Pick<GateDeps, 'log' | 'audit'>,
  { called, ...seen }: Seen,
  error: unknown,
): Reply {
  if (error instanceof KikiError) {
    audit.recordRefusal({ ...seen, error })
    return refusal(error)
  }
  const bug = newId('op').slice(-8)
  log.error(
    { tool: called, bug, error: error instanceof Error ? (error.stack ?? messageOf(error)) : messageOf(error) },
    'a call failed by a bug',
  )
  const failure = new KikiError('internal_error', `Kiki failed (log entry ${bug}); nothing was started.`)
  audit.recordRefusal({ ...seen, error: failure })
  return refusal(failure)
}

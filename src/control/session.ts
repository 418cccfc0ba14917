import type { z } from 'zod'
import { inlineWait, keyFor, withoutReplay } from '../calls/steps.js'
import { workspaceOf } from '../calls/terms.js'
import { sharedTools } from '../exposure/catalog.js'
import type { Connection } from '../grants/connections.js'
import type { Reply } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { limitsOf } from '../operations/operations.js'
import { lesserMode } from '../policy/modes.js'
import type { Session } from '../sessions/sessions.js'
import { endedWords } from '../sessions/worktrees.js'
import { currentBranch } from '../workspace/git.js'
import { folderStands } from '../workspace/workspace.js'
import type { ControlCall, ControlDeps } from './control.js'
import type { sessionArguments } from './schemas.js'

type Call = ControlCall<z.output<typeof sessionArguments>>

const PAGE = 20
const NO_SESSION = 'The owner shares no session with you yet. Ask the user to make one in Kiki: kiki sessions create.'

export function controlSession(deps: ControlDeps, call: Call): Promise<Reply> {
  switch (call.args.action) {
    case 'list':
      return list(deps, call)
    case 'resume':
      return resume(deps, call)
    case 'new':
      return create(deps, call)
    case 'close':
      return close(deps, call)
  }
}

async function list(deps: ControlDeps, { caller, connection, args }: Call): Promise<Reply> {
  const offset = Number(args.cursor ?? '0')
  if (!Number.isSafeInteger(offset) || offset < 0)
    throw new KikiError('invalid_arguments', 'The cursor is not one that Kiki gave out.')
  const found = deps.sessions.list({ connectionId: connection.id, status: 'open', limit: PAGE + 1, offset })
  const attached = new Set(deps.sessions.attachedTo(caller))
  const sessions = found.slice(0, PAGE).map((session) => ({
    session_ref: session.ref,
    title: session.title,
    workspace: session.workspace,
    mode: lesserMode(session.mode, connection.grant.ceiling),
    profile: session.profile,
    last_activity: new Date(session.lastActivityAt).toISOString(),
    attached: attached.has(session.ref),
    ...(folderStands(session.workspace, session.mounted) ? {} : { workspace_available: false }),
  }))
  const lines = sessions.map(
    (s) =>
      `${s.session_ref}  ${s.title}  ${s.workspace}  ${s.mode}${s.attached ? '  (attached)' : ''}${s.workspace_available === false ? '  (its folder is gone)' : ''}`,
  )
  const structured = {
    sessions,
    ...(sessions.length === 0 ? { message: NO_SESSION } : {}),
    ...(found.length > PAGE ? { cursor: String(offset + PAGE) } : {}),
  }
  const text =
    lines.length === 0
      ? NO_SESSION
      : `${lines.length} session${lines.length === 1 ? '' : 's'}:\n${lines.join('\n')}${found.length > PAGE ? `\nMore: cursor ${structured.cursor}` : ''}`
  return { content: [{ type: 'text', text }], structuredContent: structured, _meta: {} }
}

async function resume(deps: ControlDeps, { caller, connection, args }: Call): Promise<Reply> {
  const session = deps.sessions.resolve(caller, required(args.session_ref, 'resume'))
  workspaceOf(deps, connection, session)
  const profile = deps.sessions.profileOf(session)
  await deps.sessions.attach(caller, session.ref)
  deps.sessions.touch(session)
  await deps.events.emit('session.changed', { sessionRef: session.ref, connectionId: connection.id })
  await deps.events.emit('catalog.changed', { connectionId: connection.id, holder: caller.holder })
  const tools = sharedTools(connection, profile).map((tool) => tool.name)
  const facts = {
    ...factsOf(session, connection),
    tools,
    ...(profile?.instructions === undefined ? {} : { instructions: profile.instructions }),
  }
  const text = [
    `Resumed "${session.title}" (${session.ref}).`,
    `Workspace: ${session.workspace}${facts.branch === null ? '' : ` on branch ${facts.branch}`}. Mode: ${facts.mode}.`,
    `Tools: ${tools.join(', ') || 'none'}. Paths are relative to the workspace.`,
    `Call them with "_kiki": {"session_ref": "${session.ref}"}; for tools with side effects add "idempotency_key": a new one for each new call, the same one to retry.`,
    'If your tool list does not show them yet, call them by name if your application lets you; if not, the user can name the session in its configuration (kiki connect … --session).',
    ...(profile?.instructions === undefined ? [] : [profile.instructions]),
  ].join('\n')
  // Some applications show the model only this: it has to say everything that the text says.
  return { content: [{ type: 'text', text }], structuredContent: { ...facts, message: text }, _meta: {} }
}

async function create(deps: ControlDeps, { caller, connection, args, request }: Call): Promise<Reply> {
  const { key, made } = keyFor('kiki_session new', connection, args._kiki)
  const from = deps.sessions.resolve(caller, required(args.session_ref, 'new'))
  const claim = await deps.operations.claim({
    connection,
    session: from,
    tool: 'kiki_session',
    effect: 'control',
    args: { action: 'new', session_ref: from.ref },
    key,
    client: caller.client,
    decision: { kind: 'allow', by: 'control', reason: 'It has the workspace and settings of a shared session.' },
    lanes: [],
  })
  const limits = limitsOf(connection)
  if (claim.kind === 'over') return deps.operations.replay(claim.row, limits)
  if (claim.kind === 'new') {
    void deps.operations.run(claim.live, async () => {
      const session = await deps.sessions.createLike(from)
      await deps.events.emit('session.changed', { sessionRef: session.ref, connectionId: connection.id })
      const text = `Made session ${session.ref} in ${session.workspace}. Call kiki_session with {"action":"resume","session_ref":"${session.ref}"} next.`
      return { content: [{ type: 'text', text }], facts: factsOf(session, connection) }
    })
  }
  const reply = await deps.operations.answer(claim.live, inlineWait(connection, args._kiki?.wait_ms), limits, request)
  return made ? withoutReplay(reply) : reply
}

async function close(deps: ControlDeps, { connection, args }: Call): Promise<Reply> {
  const session = deps.sessions.ofConnection(connection.id, required(args.session_ref, 'close'))
  if (session.status === 'closed')
    return { content: [{ type: 'text', text: `Session ${session.ref} was closed before.` }], _meta: {} }
  const { cancelled, worktree } = await deps.lifecycle.closeSession(session.ref)
  const work =
    cancelled === 0
      ? 'Nothing was unfinished.'
      : `${cancelled} unfinished operation${cancelled === 1 ? ' was' : 's were'} cancelled.`
  const kept = worktree === undefined ? '' : `${endedWords(worktree)} `
  return {
    content: [{ type: 'text', text: `Closed session ${session.ref}. ${work} ${kept}The records stay with the owner.` }],
    _meta: {},
  }
}

function factsOf(session: Session, connection: Connection) {
  return {
    session_ref: session.ref,
    title: session.title,
    workspace: session.workspace,
    branch: currentBranch(session.workspace) ?? null,
    mode: lesserMode(session.mode, connection.grant.ceiling),
    profile: session.profile,
  }
}

function required(ref: string | undefined, action: string): string {
  if (ref !== undefined) return ref
  throw new KikiError('session_required', `kiki_session ${action} needs session_ref.`, {
    hint: 'Call kiki_session with {"action":"list"} to see the sessions that are shared with you.',
  })
}

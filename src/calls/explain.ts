import { KikiError } from '../lib/errors.js'
import type { Tool } from '../tools/tool.js'
import type { GateDeps } from './call-tool.js'
import { type DescribedScript, describeScript, scriptOf } from './command.js'
import { judge } from './judge.js'
import { authenticate, findTool } from './steps.js'
import { workspaceOf } from './terms.js'

export interface Explanation {
  tool: string
  decision: 'allow' | 'ask' | 'deny'
  /** The row or setting that made it. */
  by: string
  reason: string
  /** What approving the same kind would cover, where the owner is asked. */
  covers: string[]
  /** Of a command: its parts and their classes (CC-01). */
  command?: DescribedScript
}

export interface ExplainInput {
  session: string
  tool: string
  argument?: string | Record<string, unknown> | undefined
}

/**
 * What the standing policy says of a call now, by the very code that decides about calls (PO-06). Nothing is run or recorded.
 * @throws KikiError `not_found` for the session, `invalid_arguments` for arguments that the tool would refuse.
 */
export async function explainCall(
  deps: GateDeps,
  { session: ref, tool: name, argument }: ExplainInput,
): Promise<Explanation> {
  const session = deps.sessions.require(ref)
  const connection = deps.connections.require(session.connectionId)
  const described: Pick<Explanation, 'command'> = {}
  try {
    const tool = findTool(authenticate(deps, { connectionId: connection.id, holder: 'owner' }), name)
    const args = argumentsFor(tool, argument)
    const script = await scriptOf(deps.scripts, tool, args)
    if (script !== undefined) described.command = describeScript(script)
    const profile = deps.sessions.profileOf(session)
    const workspace = workspaceOf(deps, connection, session)
    const { decision, question } = judge(deps, { tool, args, script, connection, session, profile, workspace })
    const { kind, by, reason } = decision
    return { tool: name, decision: kind, by, reason, covers: question?.kinds.map(({ key }) => key) ?? [], ...described }
  } catch (error) {
    if (!(error instanceof KikiError) || error.code === 'invalid_arguments') throw error
    const by = typeof error.data?.setting === 'string' ? error.data.setting : error.code
    return { tool: name, decision: 'deny', by, reason: error.message, covers: [], ...described }
  }
}

/** A person names a path; what else the tool needs does not bear on the decision, unless it is given. */
function argumentsFor(tool: Omit<Tool, 'run'>, argument: ExplainInput['argument']): unknown {
  const given = typeof argument === 'string' && tool.command !== undefined ? { command: argument } : argument
  if (typeof given === 'object') {
    const parsed = tool.input.safeParse(given)
    if (parsed.success) return parsed.data
    throw new KikiError('invalid_arguments', `${tool.name} would refuse these arguments.`, {
      hint: 'Give all that it needs, as JSON, or only the path.',
      data: { issues: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) },
    })
  }
  if (given === undefined) return { path: '.', from: '.', to: '.', command: '' }
  return { path: given, from: given, to: given }
}

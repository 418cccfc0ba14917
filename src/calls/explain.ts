import { KikiError } from '../lib/errors.js'
import type { Tool } from '../tools/tool.js'
import { openWorkspace } from '../workspace/workspace.js'
import type { GateDeps } from './call-tool.js'
import { judge } from './judge.js'
import { authenticate, findTool } from './steps.js'

export interface Explanation {
  tool: string
  decision: 'allow' | 'ask' | 'deny'
  /** The row or setting that made it. */
  by: string
  reason: string
  /** What approving the same kind would cover, where the owner is asked. */
  covers: string[]
  /** Of a command (CC-01). */
  classes?: string[]
  commands?: { text: string; classes: string[] }[]
  /** Why the script cannot be looked through. */
  opaque?: string
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
  const refusal = (error: unknown): Explanation => {
    if (!(error instanceof KikiError)) throw error
    const by = typeof error.data?.setting === 'string' ? error.data.setting : error.code
    return { tool: name, decision: 'deny', by, reason: error.message, covers: [] }
  }
  let tool: Tool
  try {
    const connection = authenticate(deps, { connectionId: session.connectionId, holder: 'owner' })
    tool = findTool(connection, name)
  } catch (error) {
    return refusal(error)
  }
  const args = argumentsFor(tool, argument)
  try {
    const connection = deps.connections.require(session.connectionId)
    const profile = deps.sessions.profileOf(session)
    const workspace = openWorkspace({
      root: session.workspace,
      mounted: session.mounted,
      dirs: connection.grant.dirs,
      home: deps.fence,
    })
    const { decision, question } = judge(deps, { tool, args, connection, session, profile, workspace })
    const covers = question?.kinds.map(({ key }) => key) ?? []
    return { tool: name, decision: decision.kind, by: decision.by, reason: decision.reason, covers }
  } catch (error) {
    return refusal(error)
  }
}

/** A person names a path; what else the tool needs does not bear on the decision, unless it is given. */
function argumentsFor(tool: Tool, argument: ExplainInput['argument']): unknown {
  if (typeof argument === 'object') {
    const parsed = tool.input.safeParse(argument)
    if (parsed.success) return parsed.data
    throw new KikiError('invalid_arguments', `${tool.name} would refuse these arguments.`, {
      hint: 'Give all that it needs, as JSON, or only the path.',
      data: { issues: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })) },
    })
  }
  if (argument === undefined) return { path: '.', from: '.', to: '.' }
  return { path: argument, from: argument, to: argument }
}

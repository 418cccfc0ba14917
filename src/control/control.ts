import type { z } from 'zod'
import { type GateDeps, refused } from '../calls/call-tool.js'
import type { Caller, ToolRequest } from '../calls/caller.js'
import { authenticate, invalidArguments } from '../calls/steps.js'
import type { Events } from '../events/events.js'
import type { Connection } from '../grants/connections.js'
import type { Reply } from '../lib/content.js'
import type { Lifecycle } from '../lifecycle/endings.js'
import type { Store } from '../store/store.js'
import { annotationsOf, jsonSchema, type ToolDefinition, withKiki } from '../tools/schema.js'
import { controlOperation } from './operation.js'
import { saveText } from './save-text.js'
import { operationArguments, saveTextArguments, sessionArguments } from './schemas.js'
import { controlSession } from './session.js'

export interface ControlDeps extends GateDeps {
  store: Store
  events: Events
  lifecycle: Lifecycle
}

/** What a control tool works with, once the caller is known and the arguments are parsed. */
export interface ControlCall<Args> {
  caller: Caller
  connection: Connection
  args: Args
  request: ToolRequest
}

interface ControlTool {
  definition: ToolDefinition
  call(deps: ControlDeps, caller: Caller, request: ToolRequest): Promise<Reply>
}

function control<Args>(
  name: string,
  title: string,
  description: string,
  input: z.ZodType<Args>,
  run: (deps: ControlDeps, call: ControlCall<Args>) => Promise<Reply>,
): ControlTool {
  return {
    definition: {
      name,
      title,
      description,
      inputSchema: withKiki(jsonSchema(input), false),
      annotations: { ...annotationsOf('control') },
    },
    async call(deps, caller, request) {
      try {
        const connection = authenticate(deps, caller)
        const parsed = input.safeParse(request.arguments)
        if (!parsed.success) throw invalidArguments(name, parsed.error, request.arguments)
        deps.rate.count(connection.id, connection.grant.rate, 'connection.rate')
        deps.connections.touch(connection)
        return await run(deps, { caller, connection, args: parsed.data, request })
      } catch (error) {
        return refused(deps, { connectionId: caller.connectionId, called: name, tool: name }, error)
      }
    },
  }
}

/** The three tools that every client sees, attached or not (SE-02). They run nothing of the machine's. */
export const CONTROL_TOOLS: readonly ControlTool[] = [
  control(
    'kiki_session',
    'Kiki sessions',
    'List the sessions that the owner shares with you, resume one (adds its tools to your list), make a new one with the settings of another (needs _kiki.idempotency_key), or close one. After resume, put session_ref into _kiki of every call.',
    sessionArguments,
    controlSession,
  ),
  control(
    'kiki_operation',
    'Kiki operations',
    'Ask about a call by its operation_id: get its state, wait for its end, read its saved result in pages (follow next until it is absent), cancel it; or list recent ones of a session. Never repeat a call to learn how it went.',
    operationArguments,
    controlOperation,
  ),
  control(
    'kiki_save_text',
    'Save text in Kiki',
    'Save a text that the owner should find in this session. Only what you pass is saved (up to 1,000,000 characters), marked as external and unverified. Needs _kiki.idempotency_key.',
    saveTextArguments,
    saveText,
  ),
]

export function findControl(name: string): ControlTool | undefined {
  return CONTROL_TOOLS.find((tool) => tool.definition.name === name)
}

import { Client, type ClientOptions } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { MAIN, type TestHost } from './host.js'

/** The clients of the real world: the old SDK, and the new one in each of its ways. */
export const ERAS = ['v1', 'v2 legacy', 'v2 auto', 'v2 2026-07-28'] as const
export type Era = (typeof ERAS)[number]

export interface CallResult {
  content: {
    type: string
    text?: string
    data?: string
    mimeType?: string
    resource?: { uri: string; blob?: string; text?: string }
  }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

export interface TestClient {
  era: Era
  /** Names in `tools/list`. */
  tools(): Promise<string[]>
  definitions(): Promise<
    {
      name: string
      inputSchema: Record<string, unknown>
      annotations?: Record<string, unknown>
      description?: string
    }[]
  >
  call(name: string, args?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<CallResult>
  /** Resolves at the next `tools/list_changed` after the call of this function. */
  listChanged(): Promise<void>
  /** Pid of the bridge. */
  pid: number
  instructions: string | undefined
  close(): Promise<void>
}

export interface BridgeOptions {
  session?: string
  args?: string[]
  env?: Record<string, string>
  /** What the bridge says on standard error is of no interest. */
  quiet?: boolean
}

/** A real client over a real bridge process. */
export async function connectClient(
  host: Pick<TestHost, 'home'>,
  connection: string,
  era: Era,
  options: BridgeOptions = {},
): Promise<TestClient> {
  const session = options.session === undefined ? [] : ['--session', options.session]
  const server = {
    command: process.execPath,
    args: [MAIN, 'mcp', '--client', connection, '--tools', '--home', host.home, ...session, ...(options.args ?? [])],
    stderr: options.quiet ? ('ignore' as const) : ('inherit' as const),
    ...(options.env === undefined ? {} : { env: options.env }),
  }
  return era === 'v1' ? connectOld(server) : connectNew(server, era)
}

type Server = ConstructorParameters<typeof StdioClientTransport>[0]

async function connectOld(server: Server): Promise<TestClient> {
  const client = new OldClient({ name: 'old-client', version: '1.0.0' })
  const changes = waiters()
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.fire())
  const transport = new OldTransport(server)
  await client.connect(transport)
  const list = async () => (await client.listTools()).tools
  return {
    era: 'v1',
    tools: async () => (await list()).map((tool) => tool.name),
    definitions: async () => (await list()) as Awaited<ReturnType<TestClient['definitions']>>,
    call: async (name, args = {}, callOptions = {}) =>
      (await client.callTool({ name, arguments: args }, undefined, callOptions)) as CallResult,
    listChanged: changes.next,
    pid: transport.pid ?? 0,
    instructions: client.getInstructions(),
    close: () => client.close(),
  }
}

async function connectNew(server: Server, era: Exclude<Era, 'v1'>): Promise<TestClient> {
  const changes = waiters()
  const options: ClientOptions = {
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => changes.fire() } },
  }
  if (era === 'v2 auto') options.versionNegotiation = { mode: 'auto' }
  if (era === 'v2 2026-07-28') options.versionNegotiation = { mode: { pin: '2026-07-28' } }
  const client = new Client({ name: 'new-client', version: '2.0.0' }, options)
  const transport = new StdioClientTransport(server)
  await client.connect(transport)
  const list = async () => (await client.listTools()).tools
  return {
    era,
    tools: async () => (await list()).map((tool) => tool.name),
    definitions: async () => (await list()) as Awaited<ReturnType<TestClient['definitions']>>,
    call: async (name, args = {}, callOptions = {}) =>
      (await client.callTool({ name, arguments: args }, callOptions)) as CallResult,
    listChanged: changes.next,
    pid: transport.pid ?? 0,
    instructions: client.getInstructions(),
    close: () => client.close(),
  }
}

function waiters() {
  const waiting: (() => void)[] = []
  return {
    fire: () => {
      for (const done of waiting.splice(0)) done()
    },
    next: () => new Promise<void>((resolve) => waiting.push(resolve)),
  }
}

/** The text of a result's blocks. */
export function textOf(result: CallResult): string {
  return result.content.map((block) => block.text ?? '').join('\n')
}

/** A part of `_meta`. */
export function meta<T = Record<string, unknown>>(
  result: CallResult,
  key: 'kiki/operation' | 'kiki/result' | 'kiki/error',
): T {
  return result._meta?.[key] as T
}

/**
 * What real clients said over the bridge, message by message, as scripts/clients/tee.mjs recorded it (docs/clients.md).
 * `call` stands where the client makes a call; ids and `_meta` are the client's own.
 */
export interface Dialogue {
  client: { name: string; version: string }
  /** Up to the list of tools; each request is answered before the next message. */
  opening: Message[]
  call(id: number, tool: string, args: object): Message
  /** What it sends once a call of this id is answered. */
  afterCall?(id: number): Message
  /** How it ends the bridge. */
  ends: 'stdin' | 'SIGINT' | 'SIGTERM'
}

export interface Message {
  jsonrpc: '2.0'
  id?: number | string
  method: string
  params?: Record<string, unknown>
}

const INITIALIZED: Message = { jsonrpc: '2.0', method: 'notifications/initialized' }

function initialize(protocolVersion: string, capabilities: object, clientInfo: object): Message {
  return { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion, capabilities, clientInfo } }
}

function toolCall(id: number, name: string, args: object, _meta: object): Message {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, _meta } }
}

const CLAUDE_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': {
    name: 'claude-code',
    title: 'Claude Code',
    version: '2.1.332',
    description: "Anthropic's agentic coding tool",
    websiteUrl: 'https://claude.com/claude-code',
  },
  'io.modelcontextprotocol/clientCapabilities': {
    roots: { listChanged: true },
    elicitation: { form: {}, url: {} },
  },
}

export const DIALOGUES: Dialogue[] = [
  {
    client: { name: 'claude-code', version: '2.1.332' },
    opening: [
      { jsonrpc: '2.0', id: 'server-discover-probe-1', method: 'server/discover', params: { _meta: CLAUDE_META } },
      {
        jsonrpc: '2.0',
        id: 'listen:0',
        method: 'subscriptions/listen',
        params: { _meta: CLAUDE_META, notifications: { toolsListChanged: true } },
      },
      { method: 'server/discover', jsonrpc: '2.0', id: 0, params: { _meta: CLAUDE_META } },
      { method: 'tools/list', jsonrpc: '2.0', id: 1, params: { _meta: CLAUDE_META } },
    ],
    call: (id, tool, args) =>
      toolCall(id, tool, args, { ...CLAUDE_META, 'claudecode/toolUseId': `toolu_${id}`, progressToken: id }),
    ends: 'SIGINT',
  },
  {
    client: { name: 'codex-mcp-client', version: '0.171.0' },
    opening: [
      initialize(
        '2025-06-18',
        { experimental: { 'codex/auth-change': {} }, elicitation: { form: {}, url: {} } },
        { name: 'codex-mcp-client', title: 'Codex', version: '0.171.0' },
      ),
      INITIALIZED,
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { progressToken: 0 } } },
    ],
    call: (id, tool, args) =>
      toolCall(id, tool, args, {
        callId: `call_${id}`,
        'x-codex-turn-metadata': { turn_trigger: 'exec', sandbox_mode: 'read-only', workspaces: {} },
        threadId: '01a22edb',
        progressToken: id,
      }),
    ends: 'SIGTERM',
  },
  {
    client: { name: 'gemini-cli-mcp-client', version: '0.61.0' },
    opening: [
      initialize('2025-06-18', { roots: { listChanged: true } }, { name: 'gemini-cli-mcp-client', version: '0.61.0' }),
      INITIALIZED,
      { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
    ],
    // A parameter that it offers its model with every tool, and passes on.
    call: (id, tool, args) =>
      toolCall(
        id,
        tool,
        { ...args, wait_for_previous: id % 2 === 0 },
        { progressToken: `4673863d-21c2-4aaf-80ef-${id}` },
      ),
    ends: 'SIGTERM',
  },
  {
    client: { name: 'opencode', version: '1.18.33' },
    opening: [
      initialize('2025-11-25', { roots: {} }, { name: 'opencode', version: '1.18.33' }),
      INITIALIZED,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    ],
    call: (id, tool, args) => toolCall(id, tool, args, { progressToken: id }),
    afterCall: (id) => ({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: id, reason: 'AbortError: The operation was aborted.' },
    }),
    ends: 'stdin',
  },
]

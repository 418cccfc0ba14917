import { posix, resolve, win32 } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'smol-toml'
import { type UserFolders, userFolders } from '../config/home.js'
import { KikiError } from '../lib/errors.js'
import { shellWord } from '../lib/shell-word.js'

/** The clients of `kiki connect` (CL-13). */
export const CONNECT_CLIENTS = [
  'claude-desktop',
  'claude-code',
  'cursor',
  'vscode',
  'codex',
  'gemini',
  'opencode',
  'zed',
  'windsurf',
] as const
export type ConnectClient = (typeof CONNECT_CLIENTS)[number]

/** How one client is told about Kiki. */
export interface ClientConfig {
  client: ConnectClient
  /** The user's own settings file of that client. */
  file: string
  format: 'json' | 'toml'
  /** What `file` has to contain: an object to merge, or TOML text to append. */
  config: Record<string, unknown> | string
  /** The client's own command that does the same, as program and arguments. */
  command?: string[]
  /** What would not work with this configuration, and what to do about it. */
  warning?: string
}

/** The program that a client has to start, and where it looks for its settings. */
export interface Machine {
  node: string
  script: string
  platform: NodeJS.Platform
  folders: UserFolders
}

export interface ConnectOptions {
  client: string
  /** Id of the connection, `client_…`. */
  connection: string
  session?: string | undefined
  home: string
  json?: boolean | undefined
}

interface Launch {
  command: string
  args: string[]
}

interface ClientFormat {
  title: string
  /** It takes the list of tools once, and refuses calls of a tool that was not in it (tried, docs/clients.md). */
  listsOnce?: true
  file(machine: Machine): string
  config(launch: Launch): ClientConfig['config']
  command?(launch: Launch): string[]
}

/** The entry's name in every client. */
const NAME = 'kiki'

const mcpServers = (launch: Launch) => ({ mcpServers: { [NAME]: { ...launch } } })
const typedMcpServers = (launch: Launch) => ({ mcpServers: { [NAME]: { type: 'stdio', ...launch } } })

const inHome =
  (...parts: string[]) =>
  (machine: Machine) =>
    joinOn(machine, machine.folders.home, ...parts)

/** Formats as the clients' own documentation gave them in November 2026. */
const FORMATS: Record<ConnectClient, ClientFormat> = {
  'claude-desktop': {
    title: 'Claude Desktop',
    file: (machine) => joinOn(machine, appFolder(machine), 'Claude', 'claude_desktop_config.json'),
    config: mcpServers,
  },
  'claude-code': {
    title: 'Claude Code',
    file: inHome('.claude.json'),
    config: typedMcpServers,
    command: ({ command, args }) => ['claude', 'mcp', 'add', '--scope', 'user', NAME, '--', command, ...args],
  },
  cursor: { title: 'Cursor', file: inHome('.cursor', 'mcp.json'), config: typedMcpServers },
  vscode: {
    title: 'VS Code',
    file: (machine) => joinOn(machine, appFolder(machine), 'Code', 'User', 'mcp.json'),
    config: (launch) => ({ servers: { [NAME]: { type: 'stdio', ...launch } } }),
    command: (launch) => ['code', '--add-mcp', JSON.stringify({ name: NAME, type: 'stdio', ...launch })],
  },
  codex: {
    title: 'Codex',
    listsOnce: true,
    file: (machine) => joinOn(machine, machine.folders.codex, 'config.toml'),
    config: (launch) => stringify({ mcp_servers: { [NAME]: { ...launch } } }),
    command: ({ command, args }) => ['codex', 'mcp', 'add', NAME, '--', command, ...args],
  },
  gemini: {
    title: 'Gemini CLI',
    file: inHome('.gemini', 'settings.json'),
    config: mcpServers,
    command: ({ command, args }) => ['gemini', 'mcp', 'add', '--scope', 'user', NAME, command, '--', ...args],
  },
  opencode: {
    title: 'opencode',
    file: (machine) => joinOn(machine, machine.folders.config, 'opencode', 'opencode.json'),
    config: ({ command, args }) => ({
      $schema: 'https://opencode.ai/config.json',
      mcp: { [NAME]: { type: 'local', command: [command, ...args], enabled: true } },
    }),
  },
  zed: {
    title: 'Zed',
    file: (machine) =>
      machine.platform === 'win32'
        ? joinOn(machine, machine.folders.appData, 'Zed', 'settings.json')
        : joinOn(machine, machine.folders.config, 'zed', 'settings.json'),
    config: (launch) => ({ context_servers: { [NAME]: { source: 'custom', ...launch, env: {} } } }),
  },
  windsurf: { title: 'Windsurf', file: inHome('.codeium', 'windsurf', 'mcp_config.json'), config: mcpServers },
}

/** This installation on this machine. */
export function thisMachine(): Machine {
  return {
    node: process.execPath,
    script: fileURLToPath(new URL('../main.js', import.meta.url)),
    platform: process.platform,
    folders: userFolders(),
  }
}

/**
 * The exact configuration of one client (CL-13): absolute paths of Node.js, Kiki and its home, and the session where one is given.
 * @throws KikiError `invalid_arguments` for an unknown client or an id that is none.
 */
export function clientConfig(options: ConnectOptions, machine: Machine = thisMachine()): ClientConfig {
  const client = CONNECT_CLIENTS.find((known) => known === options.client)
  if (client === undefined) {
    throw new KikiError('invalid_arguments', `Kiki does not know the client ${JSON.stringify(options.client)}.`, {
      hint: `It knows ${CONNECT_CLIENTS.join(', ')}. Any other MCP client can run the command that one of these gets.`,
    })
  }
  if (!/^client_[A-Za-z0-9_-]+$/.test(options.connection)) {
    throw new KikiError('invalid_arguments', `${JSON.stringify(options.connection)} is no connection id.`, {
      hint: 'It starts with client_: see `kiki connections list`, or make one with `kiki connections add`.',
    })
  }
  if (options.session !== undefined && !/^ext_[A-Za-z0-9_-]+$/.test(options.session)) {
    throw new KikiError('invalid_arguments', `${JSON.stringify(options.session)} is no session reference.`, {
      hint: 'It starts with ext_: see `kiki sessions list`.',
    })
  }
  const home = resolve(options.home)
  const session = options.session === undefined ? [] : ['--session', options.session]
  const args = [machine.script, 'mcp', '--client', options.connection, '--tools', '--home', home, ...session]
  const format = FORMATS[client]
  const launch: Launch = { command: machine.node, args }
  const config = format.config(launch)
  const command = format.command?.(launch)
  return {
    client,
    file: format.file(machine),
    format: typeof config === 'string' ? 'toml' : 'json',
    config,
    ...(command && { command }),
    ...(format.listsOnce && options.session === undefined && { warning: needsSession(format.title, options) }),
  }
}

function needsSession(title: string, { client, connection }: ConnectOptions): string {
  return `${title} asks for the list of tools once, so it never sees the tools that a session adds. Give it a session from the start: kiki connect ${client} --client ${connection} --session REF (see \`kiki sessions list\`).`
}

/** The body of `kiki connect`: what it prints, for a person or (`json`) for a program. */
export function connect(options: ConnectOptions, machine: Machine = thisMachine()): string {
  const found = clientConfig(options, machine)
  if (options.json) return `${JSON.stringify(found, null, 2)}\n`
  const { title } = FORMATS[found.client]
  const config = typeof found.config === 'string' ? found.config.trim() : JSON.stringify(found.config, null, 2)
  const byCommand = found.command
    ? `Run this to add Kiki to ${title}:\n\n  ${found.command.map((word) => shellWord(word, machine.platform)).join(' ')}\n\nOr add`
    : 'Add'
  return [
    `${byCommand} this to ${found.file}, next to what is already there:`,
    '',
    config,
    '',
    `Then restart ${title}.`,
    ...(found.warning === undefined ? [] : ['', found.warning]),
    '',
  ].join('\n')
}

/** Where desktop applications keep their settings. */
function appFolder(machine: Machine): string {
  const { platform, folders } = machine
  if (platform === 'win32') return folders.appData
  return platform === 'darwin' ? joinOn(machine, folders.home, 'Library', 'Application Support') : folders.config
}

function joinOn({ platform }: Machine, ...parts: string[]): string {
  return platform === 'win32' ? win32.join(...parts) : posix.join(...parts)
}

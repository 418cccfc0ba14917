import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { CONNECT_CLIENTS, clientConfig, connect, type Machine, thisMachine } from '../../src/cli/connect.js'
import { KikiError } from '../../src/lib/errors.js'

const linux: Machine = {
  node: '/usr/bin/node',
  script: "/opt/o'kiki/dist/main.js",
  platform: 'linux',
  folders: { home: '/home/u', config: '/home/u/.config', appData: '', codex: '/home/u/.codex' },
}
const mac: Machine = {
  ...linux,
  platform: 'darwin',
  folders: { home: '/Users/u', config: '/Users/u/.config', appData: '', codex: '/Users/u/.codex' },
}
const windows: Machine = {
  node: 'C:\\Program Files\\nodejs\\node.exe',
  script: 'C:\\kiki\\dist\\main.js',
  platform: 'win32',
  folders: {
    home: 'C:\\Users\\u',
    config: 'C:\\Users\\u\\.config',
    appData: 'C:\\Users\\u\\AppData\\Roaming',
    codex: 'C:\\Users\\u\\.codex',
  },
}
const options = { connection: 'client_1', session: 'ext_1', home: '/home/u/.kiki' }
const args = [linux.script, 'mcp', '--client', 'client_1', '--tools', '--home', '/home/u/.kiki', '--session', 'ext_1']
const stdio = { command: '/usr/bin/node', args }

describe('the exact configuration', () => {
  it.each([
    ['claude-desktop', '/home/u/.config/Claude/claude_desktop_config.json', { mcpServers: { kiki: stdio } }],
    ['claude-code', '/home/u/.claude.json', { mcpServers: { kiki: { type: 'stdio', ...stdio } } }],
    ['cursor', '/home/u/.cursor/mcp.json', { mcpServers: { kiki: { type: 'stdio', ...stdio } } }],
    ['vscode', '/home/u/.config/Code/User/mcp.json', { servers: { kiki: { type: 'stdio', ...stdio } } }],
    ['gemini', '/home/u/.gemini/settings.json', { mcpServers: { kiki: stdio } }],
    ['windsurf', '/home/u/.codeium/windsurf/mcp_config.json', { mcpServers: { kiki: stdio } }],
    [
      'opencode',
      '/home/u/.config/opencode/opencode.json',
      {
        $schema: 'https://opencode.ai/config.json',
        mcp: { kiki: { type: 'local', command: ['/usr/bin/node', ...args], enabled: true } },
      },
    ],
    [
      'zed',
      '/home/u/.config/zed/settings.json',
      { context_servers: { kiki: { source: 'custom', ...stdio, env: {} } } },
    ],
  ])('CL-13 %s', (client, file, config) => {
    expect(clientConfig({ ...options, client }, linux)).toMatchObject({ client, file, format: 'json', config })
  })

  it('CL-13 codex, as TOML', () => {
    const found = clientConfig({ ...options, client: 'codex' }, linux)
    expect(found).toMatchObject({ file: '/home/u/.codex/config.toml', format: 'toml' })
    expect(parse(String(found.config))).toEqual({ mcp_servers: { kiki: stdio } })
  })

  it('CL-13 the session is left out where none is given, the home is made absolute', () => {
    const found = clientConfig({ client: 'cursor', connection: 'client_1', home: 'h' }, linux)
    expect(JSON.stringify(found.config)).not.toContain('--session')
    expect(JSON.stringify(found.config)).toContain(JSON.stringify(resolve('h')))
  })

  it('CL-13 the files of each platform', () => {
    const fileOf = (client: string, machine: Machine) => clientConfig({ ...options, client }, machine).file
    const application = '/Users/u/Library/Application Support'
    expect(fileOf('claude-desktop', mac)).toBe(`${application}/Claude/claude_desktop_config.json`)
    expect(fileOf('vscode', mac)).toBe(`${application}/Code/User/mcp.json`)
    expect(fileOf('zed', mac)).toBe('/Users/u/.config/zed/settings.json')
    const roaming = 'C:\\Users\\u\\AppData\\Roaming'
    expect(fileOf('claude-desktop', windows)).toBe(`${roaming}\\Claude\\claude_desktop_config.json`)
    expect(fileOf('vscode', windows)).toBe(`${roaming}\\Code\\User\\mcp.json`)
    expect(fileOf('zed', windows)).toBe(`${roaming}\\Zed\\settings.json`)
    expect(fileOf('cursor', windows)).toBe('C:\\Users\\u\\.cursor\\mcp.json')
  })

  it('CL-13 this installation is named by absolute paths', () => {
    const machine = thisMachine()
    expect(machine.node).toBe(process.execPath)
    // From the sources the script is main.ts; compiled, main.js stands in its place.
    expect(existsSync(machine.script.replace(/\.js$/, '.ts'))).toBe(true)
  })
})

describe("a client's own command", () => {
  it.each([
    ['claude-code', ['claude', 'mcp', 'add', '--scope', 'user', 'kiki', '--', '/usr/bin/node', ...args]],
    ['codex', ['codex', 'mcp', 'add', 'kiki', '--', '/usr/bin/node', ...args]],
    ['gemini', ['gemini', 'mcp', 'add', '--scope', 'user', 'kiki', '/usr/bin/node', '--', ...args]],
    ['vscode', ['code', '--add-mcp', JSON.stringify({ name: 'kiki', type: 'stdio', ...stdio })]],
  ])('CL-13 %s: a shell takes the printed line apart into exactly these words', (client, words) => {
    expect(clientConfig({ ...options, client }, linux).command).toEqual(words)
    const line = connect({ ...options, client }, linux).split('\n')[2] ?? ''
    const seen = execFileSync('sh', ['-c', `printf '%s\\n' ${line}`], { encoding: 'utf8' })
    expect(seen.trimEnd().split('\n')).toEqual(words)
  })

  it('CL-13 on Windows spaces and quotes are kept', () => {
    const line = connect({ ...options, client: 'vscode' }, windows).split('\n')[2] ?? ''
    expect(line).toContain('"{\\"name\\":\\"kiki\\"')
    expect(connect({ ...options, client: 'codex' }, windows)).toContain('-- "C:\\Program Files\\nodejs\\node.exe" ')
  })
})

describe('the output', () => {
  it('CL-13 --json is one value with client, file, format, config and command', () => {
    for (const client of CONNECT_CLIENTS) {
      const value = JSON.parse(connect({ ...options, client, json: true }, linux)) as Record<string, unknown>
      expect(value).toEqual(clientConfig({ ...options, client }, linux))
    }
  })

  it('CL-13 for a person: the file, the configuration and what to do then', () => {
    const text = connect({ ...options, client: 'claude-desktop' }, linux)
    expect(text).toMatch(/^Add this to \/home\/u\/.config\/Claude\/claude_desktop_config.json, next to/)
    expect(text).toContain(JSON.stringify({ mcpServers: { kiki: stdio } }, null, 2))
    expect(text).toMatch(/Then restart Claude Desktop\.\n$/)
  })

  it('CL-13 a client that never takes up a changed list of tools is said to need a session', () => {
    const codex = { ...options, client: 'codex' }
    const without = connect({ ...codex, session: undefined }, linux)
    expect(without).toContain('kiki connect codex --client client_1 --session REF')
    expect(clientConfig({ ...codex, session: undefined }, linux).warning).toMatch(/never sees the tools/)
    expect(connect(codex, linux)).not.toContain('never sees')
    expect(clientConfig({ ...options, client: 'gemini', session: undefined }, linux)).not.toHaveProperty('warning')
  })

  it.each([
    [{ client: 'emacs', connection: 'client_1' }, 'does not know the client "emacs"'],
    [{ client: 'cursor', connection: 'nope' }, '"nope" is no connection id'],
    [{ client: 'cursor', connection: 'client_1', session: 'x' }, '"x" is no session reference'],
  ])('CL-13 %j is refused', (wrong, message) => {
    expect(() => connect({ home: '/h', ...wrong }, linux)).toThrow(KikiError)
    expect(() => connect({ home: '/h', ...wrong }, linux)).toThrow(message)
  })
})

import { CONNECT_CLIENTS, clientConfig } from '../../dist/cli/connect.js'
import { code, table } from './markdown.mjs'

const MACHINES = {
  linux: { home: '~', config: '~/.config', appData: '', codex: '~/.codex' },
  darwin: { home: '~', config: '~/.config', appData: '', codex: '~/.codex' },
  win32: {
    home: '%USERPROFILE%',
    config: '%USERPROFILE%\\.config',
    appData: '%APPDATA%',
    codex: '%USERPROFILE%\\.codex',
  },
}

/** Where each client's configuration stands on each platform, and which have a command of their own for it. */
export function clientsTable() {
  const rows = CONNECT_CLIENTS.map((client) => {
    const on = (platform) =>
      clientConfig(
        { client, connection: 'client_…'.replace('…', 'id'), home: '/home' },
        { node: 'node', script: 'main.js', platform, folders: MACHINES[platform] },
      )
    const { command } = on('linux')
    const own = command ? code(command.slice(0, command.indexOf('--add-mcp') + 1 || 3).join(' ')) : ''
    return [code(client), own, ...Object.keys(MACHINES).map((platform) => code(on(platform).file))]
  })
  return table(['`kiki connect` …', 'its own command', 'file on Linux', 'on macOS', 'on Windows'], rows)
}

import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from './environment.js'

/** Where programs keep a user's data on this platform: not Kiki's home, whose files no tool may touch. */
export function dataFolder(env: Environment, platform: NodeJS.Platform): string {
  if (platform === 'darwin') return join(homedir(), 'Library/Application Support/kiki')
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData/Local'), 'kiki')
  return join(env.XDG_DATA_HOME || join(env.HOME || homedir(), '.local/share'), 'kiki')
}

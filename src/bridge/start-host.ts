import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type HomePaths, homeCommand, hostEnvironment } from '../config/home.js'
import { makeHomeFolder, unusableHome } from '../config/home-folder.js'
import { KikiError, messageOf } from '../lib/errors.js'

export interface StartedHost {
  /** Set once the start is known to have failed. */
  failure(): KikiError | undefined
}

/**
 * Starts the host of this home in the background: a session of its own and a clean environment, so that it outlives the client and
 * inherits none of the client's secrets or switches (GU-09). Its first words go to `logs/background-start.log`.
 * @throws KikiError as {@link makeHomeFolder} where the home cannot be made or written.
 */
export function startHost(paths: HomePaths): StartedHost {
  // The home first, so that it is named where it cannot be made.
  makeHomeFolder(paths.dir)
  makeHomeFolder(paths.logs)
  const logFile = join(paths.logs, 'background-start.log')
  const log = openLog(logFile)
  let failure: KikiError | undefined
  const failed = (why: string) => {
    failure = new KikiError('internal_error', `Kiki's host could not be started: ${why}`, {
      hint: `Run ${homeCommand(paths.dir, 'start')} to see why (also in ${logFile}).`,
    })
  }
  const main = fileURLToPath(new URL('../main.js', import.meta.url))
  const child = spawn(process.execPath, [main, 'start', '--background', '--unless-stopped', '--home', paths.dir], {
    cwd: existsSync(paths.dir) ? paths.dir : homedir(),
    env: hostEnvironment(),
    detached: true,
    windowsHide: true,
    // Its standard output has the one-time login link, which belongs in no file.
    stdio: ['ignore', 'ignore', log],
  })
  closeSync(log)
  child.on('error', (error) => failed(messageOf(error)))
  child.on('exit', (code, signal) => {
    if (code !== 0) failed(reason(logFile) ?? `it ended with ${signal ?? `exit code ${code}`}.`)
  })
  child.unref()
  return { failure: () => failure }
}

function openLog(file: string): number {
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    throw unusableHome(file, error)
  }
}

/** What a failed start said: its `error:` line, else its last one. */
function reason(file: string): string | undefined {
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const error = lines.find((line) => line.startsWith('error: '))
  return error?.slice('error: '.length) ?? (lines.at(-1) || undefined)
}

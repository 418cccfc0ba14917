import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type HomePaths, hostEnvironment } from '../config/home.js'
import { KikiError, messageOf } from '../lib/errors.js'
import { makePrivateFolders } from '../lib/folders.js'

export interface StartedHost {
  /** Set once the start is known to have failed. */
  failure(): KikiError | undefined
}

/**
 * Starts the host of this home in the background: a session of its own and a clean environment, so that it outlives the client and
 * inherits none of the client's secrets or switches (GU-09). Its first words go to `logs/background-start.log`.
 */
export function startHost(paths: HomePaths): StartedHost {
  makePrivateFolders(paths.logs)
  const logFile = join(paths.logs, 'background-start.log')
  const log = openSync(logFile, 'w', 0o600)
  let failure: KikiError | undefined
  const failed = (why: string) => {
    failure = new KikiError('internal_error', `Kiki's host could not be started: ${why}`, {
      hint: `Run \`kiki start --home ${paths.dir}\` to see why (also in ${logFile}).`,
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

/** What a failed start said: its `error:` line, else its last one. */
function reason(file: string): string | undefined {
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  const error = lines.find((line) => line.startsWith('error: '))
  return error?.slice('error: '.length) ?? (lines.at(-1) || undefined)
}

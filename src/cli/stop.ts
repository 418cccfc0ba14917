import { existsSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { HomePaths } from '../config/home.js'
import { KikiError, systemCode } from '../lib/errors.js'
import { type CommandContext, homeOf, ownerOf, withExample } from './context.js'
import { resultOf } from './owner-client.js'
import { hostStatus } from './status.js'

/** How long a host may take to end its work and close its database. */
const STOP_MS = 30_000
const POLL_MS = 25

/** `kiki stop` (CL-02): ends the host, and keeps bridges from starting another until `kiki start` (GU-09). */
export function stopCommand(program: Command, { output }: CommandContext): void {
  const stop = program.command('stop').description('stop the host; clients cannot start it again by themselves')
  stop.action(async (_: unknown, command: Command) => {
    const paths = homeOf(command)
    const host = await hostStatus(command)
    forbidStarts(paths)
    if (!host) {
      await output.result({ stopped: false, running: false, home: paths.dir }, () => `No host runs for ${paths.dir}.`)
      return
    }
    await resultOf(ownerOf(command).api.stop.$post())
    await ended(host.pid)
    const result = { stopped: true, running: false, home: paths.dir, pid: host.pid }
    await output.result(result, () => `The host (pid ${host.pid}) has stopped.`)
  })
  withExample(stop, 'kiki stop')
}

/** Before the host ends, so that no bridge that loses it starts another in between. */
function forbidStarts({ dir, stopped }: HomePaths): void {
  if (existsSync(dir)) writeFileSync(stopped, '', { mode: 0o600 })
}

async function ended(pid: number): Promise<void> {
  const deadline = performance.now() + STOP_MS
  while (isAlive(pid)) {
    if (performance.now() > deadline) {
      throw new KikiError('timeout', `The host (pid ${pid}) did not end within ${STOP_MS / 1000} s.`, {
        hint: 'Look into its log, and end the process yourself if it hangs.',
      })
    }
    // The end of a process that is not our child is announced to nobody: look again shortly.
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) === 'EPERM'
  }
}

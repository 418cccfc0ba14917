import type { Socket } from 'node:net'
import type { Log } from '../lib/log.js'
import { type CommandSpawnOptions, type RunningCommand, spawnCommand } from './command.js'
import { cancelled, stopping } from './failures.js'
import type { LauncherStart } from './link.js'
import { openLink } from './link.js'
import { type StartRecord, startTimeOf } from './start-record.js'

/** A launcher within a sandbox: everything that it starts ends with it, for certain. */
export interface ConfinedProcesses {
  /** Of what confines it; undefined where it has ended already. */
  record: StartRecord | undefined
  /** @throws as `Processes.spawn`; KikiError `cancelled` where the sandbox ended with it. */
  command(options: CommandSpawnOptions): Promise<RunningCommand>
  /** Settles when the sandbox is gone, whatever ended it. */
  lost: Promise<void>
  /** The port on the sandbox's own loopback that leads to `onTunnel`. */
  tunnel: Promise<number>
  kill(why: string): void
  close(): Promise<void>
}

export interface ConfinedOptions {
  /** For the folder of its door. */
  dir: string
  log: Log
  env: Record<string, string>
  /** Gets what commands connect to on the loopback of their own network. */
  onTunnel?: ((socket: Socket) => void) | undefined
  start(door: { folder: string }): LauncherStart
}

export async function openConfined({ dir, log, env, start, onTunnel }: ConfinedOptions): Promise<ConfinedProcesses> {
  const link = await openLink({ dir, log, confined: true, start, onTunnel })
  const startTime = link.pid === undefined ? undefined : startTimeOf(link.pid)
  let lastId = 0
  let gone = false
  void link.lost.then(() => {
    gone = true
  })
  return {
    record: link.pid === undefined || startTime === undefined ? undefined : { pid: link.pid, startTime },
    async command(options) {
      if (gone) throw stopping()
      if (options.signal.aborted) throw cancelled()
      lastId += 1
      return spawnCommand(link, lastId, env, options)
    },
    lost: link.lost,
    tunnel: link.tunnel,
    kill: link.kill,
    close: link.close,
  }
}

import { existsSync, readFileSync } from 'node:fs'
import { type HomePaths, homeCommand, homePaths } from '../config/home.js'
import { KikiError } from '../lib/errors.js'
import type { BridgeOptions } from './arguments.js'
import { HostAbsent, type HostStream, openHostStream } from './host-stream.js'
import { isObject } from './message.js'
import type { StartedHost } from './start-host.js'

/** How long a started host may take until it answers; it may have to migrate its database first. */
const START_MS = 30_000
const POLL_MS = 50

/**
 * Opens a stream to the host of `options.home`, at the address where it is now. Without a host it starts one, unless `--no-start` or
 * the owner's `kiki stop` forbids that (GU-09): then it waits `patienceMs` for a host to come by itself.
 * @throws KikiError saying what to do when no stream can be had.
 */
export async function findHost(options: BridgeOptions, bridge: string, patienceMs: number): Promise<HostStream> {
  const paths = homePaths(options.home)
  let deadline = performance.now() + patienceMs
  let started: StartedHost | undefined
  for (;;) {
    try {
      return await openHostStream(paths, currentSocket(paths), { ...options, bridge })
    } catch (error) {
      if (!(error instanceof HostAbsent)) throw error
    }
    const late = performance.now() >= deadline
    const forbidden = started ? undefined : whyNotStart(options, paths)
    if (started) {
      const failure = started.failure() ?? (late ? startedInVain(paths) : undefined)
      if (failure) throw failure
    } else if (forbidden === undefined) {
      const { startHost } = await import('./start-host.js')
      started = startHost(paths)
      deadline = performance.now() + START_MS
    } else if (late) throw forbidden
    // Another process has to get ready, and nothing announces it: look again shortly.
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** Where the running host listens by its own word (it may have moved, GU-23), else where it would. */
function currentSocket(paths: HomePaths): string {
  try {
    const host: unknown = JSON.parse(readFileSync(paths.hostFile, 'utf8'))
    if (isObject(host) && typeof host.socket === 'string') return host.socket
  } catch {
    // No host file, or one that is just being written: the computed path is right for both.
  }
  return paths.socket
}

function whyNotStart(options: BridgeOptions, paths: HomePaths): KikiError | undefined {
  if (existsSync(paths.stopped)) {
    return new KikiError('upstream_unavailable', `Kiki was stopped by its owner (home ${paths.dir}).`, {
      hint: `Run ${homeCommand(paths.dir, 'start')}, then restart this MCP server in your application.`,
    })
  }
  if (options.mayStart) return undefined
  return new KikiError(
    'upstream_unavailable',
    `No Kiki host runs for ${paths.dir}, and --no-start forbids starting one.`,
    {
      hint: `Run ${homeCommand(paths.dir, 'start')}, then restart this MCP server in your application.`,
    },
  )
}

function startedInVain(paths: HomePaths): KikiError {
  return new KikiError('timeout', `Kiki's host was started but did not answer within ${START_MS / 1000} s.`, {
    hint: `Look into ${paths.logs}, or run ${homeCommand(paths.dir, 'start')} to see why.`,
  })
}

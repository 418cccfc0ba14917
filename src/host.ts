import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import writeFileAtomic from 'write-file-atomic'
import type { LoadedConfig } from './config/load.js'
import { prepareHome } from './config/prepare-home.js'
import type { Config } from './config/schema.js'
import { httpServer, listenOnLoopback, listenOnSocket } from './http/listen.js'
import { readStaticFiles } from './http/static.js'
import { deferred } from './lib/async.js'
import { type Clock, systemClock } from './lib/clock.js'
import { messageOf } from './lib/errors.js'
import { sha256 } from './lib/json.js'
import { readVersion } from './lib/version.js'
import { createBridgeStreams } from './mcp/socket-endpoint.js'
import { acceptBridges } from './mcp/upgrade.js'
import { ownerRoutes } from './owner/app.js'
import { createOwnerAuth } from './owner/auth.js'
import { createOwnerFront } from './owner/front.js'
import { loginUrl } from './owner/open.js'
import { recordActions } from './owner/record-actions.js'
import { openParts, type Parts, type Step } from './parts.js'
import type { OnCommit } from './store/commits.js'
import { claimHome } from './store/lock.js'

export interface HostOptions {
  /** The home's folder; made where it is missing. */
  home: string
  config: Config
  /** Where a key stands in `config.toml`, for what is wrong with a rule (PO-05). */
  locate?: LoadedConfig['locate']
  /** Reads the configuration again when its file is saved (CF-04); without it only a restart does. */
  reload?: () => Promise<LoadedConfig>
  clock?: Clock
  /** See {@link OnCommit}. */
  onCommit?: OnCommit | undefined
}

export interface Host {
  pid: number
  home: string
  ownerUrl: string
  socket: string
  /** A sign-in link for the settings page: works once, for 2 minutes. */
  loginUrl(): string
  /** Ends all work, every child, every stream, and gives the home free. */
  close(): Promise<void>
  /** Resolves when the host has closed, whoever asked for it. */
  closed: Promise<void>
}

/**
 * Starts the one host of a home: takes its lock, opens the database, recovers, listens (design §2).
 * @throws KikiError `conflict` when a host runs there already; DatabaseError when the database cannot be used.
 */
export async function createHost({ home, clock = systemClock, onCommit, ...given }: HostOptions): Promise<Host> {
  const paths = prepareHome(home)
  const unlock = claimHome(paths)
  const undo: Step[] = [unlock]
  let ending: Promise<void> | undefined
  const closed = deferred<void>()
  const close = () => {
    ending ??= unwind(undo).finally(() => closed.resolve())
    return ending
  }
  try {
    const parts = await openParts({ paths, clock, onCommit, undo, ...given })
    const listeners = await listen(parts, () => setImmediate(() => void close()))
    return { ...listeners, pid: process.pid, home: paths.dir, socket: paths.socket, close, closed: closed.promise }
  } catch (error) {
    // Why it did not start matters more than what then could not be closed.
    await close().catch((closing: unknown) => process.emitWarning(`after a failed start: ${messageOf(closing)}`))
    throw error
  }
}

/** Ends what was begun, last first; one failing step does not keep the others from running. */
async function unwind(undo: Step[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of undo.reverse()) {
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'the host did not close cleanly')
}

/** Binds the owner listener and the local socket, then tells the world by `host.json`. */
async function listen(parts: Parts, stop: () => void): Promise<Pick<Host, 'ownerUrl' | 'loginUrl'>> {
  const { paths, config, clock, log, secrets, undo } = parts
  const version = readVersion()
  const auth = createOwnerAuth({
    ownerTokenHash: sha256(secrets.ownerToken),
    clock,
    socketNeedsToken: process.platform === 'win32',
  })
  let port = 0
  const ownerUrl = () => `http://127.0.0.1:${port}`
  const started = { startedAt: clock.now(), startedSteady: clock.monotonic() }
  const host = { pid: process.pid, version, home: paths.dir, ...started, ownerUrl }
  const routes = ownerRoutes({ ...parts, auth, host, stop })
  const files = readStaticFiles(fileURLToPath(new URL('../dist/web', import.meta.url)))
  const front = createOwnerFront({ auth, port: () => port, routes, files, log, record: recordActions(parts) })

  const streams = createBridgeStreams({
    ...parts.gate,
    store: parts.store,
    events: parts.events,
    lifecycle: parts.lifecycle,
    version,
  })
  const refused = (error: Error) => log.error({ error: error.message }, 'a connection could not be taken')
  const listener = httpServer(front.fetch, 'listener', refused)
  const socket = httpServer(front.fetch, 'socket', refused)
  acceptBridges(socket.server, { ...parts, streams })
  port = await listenOnLoopback(listener, config.owner.port)
  undo.push(() => listener.close())
  await listenOnSocket(socket, paths.socket)
  undo.push(
    () => socket.close(),
    () => streams.closeAll(),
    streams.sweepLater(),
  )
  const facts = {
    pid: host.pid,
    version,
    home: paths.dir,
    started_at: new Date(host.startedAt).toISOString(),
    owner_url: ownerUrl(),
    socket: paths.socket,
  }
  await writeFileAtomic(paths.hostFile, `${JSON.stringify(facts, null, 2)}\n`, { mode: 0o600 })
  undo.push(() => rmSync(paths.hostFile, { force: true }))
  log.info(facts, 'started')
  return { ownerUrl: ownerUrl(), loginUrl: () => loginUrl(ownerUrl(), auth.codes.create().code) }
}

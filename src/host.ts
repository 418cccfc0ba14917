import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import writeFileAtomic from 'write-file-atomic'
import { createApprovals } from './approvals/approvals.js'
import { createAudit } from './audit/audit.js'
import { openAuditFiles } from './audit/head-file.js'
import { adopt, type GateDeps, runClaimed } from './calls/call-tool.js'
import { createScripts } from './calls/command.js'
import { createRateLimit } from './calls/rate.js'
import { durationMs } from './config/duration.js'
import { environment } from './config/environment.js'
import type { HomePaths } from './config/home.js'
import type { LoadedConfig } from './config/load.js'
import { prepareHome, readSecrets } from './config/prepare-home.js'
import type { Config } from './config/schema.js'
import { createEvents } from './events/events.js'
import { createConnections } from './grants/connections.js'
import { createCredentials } from './grants/credentials.js'
import { createStandingRules } from './grants/standing-rules.js'
import { httpServer, listenOnLoopback, listenOnSocket } from './http/listen.js'
import { readStaticFiles } from './http/static.js'
import { deferred } from './lib/async.js'
import { type Clock, systemClock } from './lib/clock.js'
import { messageOf } from './lib/errors.js'
import { newId } from './lib/ids.js'
import { sha256 } from './lib/json.js'
import { createLog } from './lib/log.js'
import { readVersion } from './lib/version.js'
import { createLifecycle } from './lifecycle/endings.js'
import { createSettings } from './lifecycle/settings.js'
import { createBridgeStreams } from './mcp/socket-endpoint.js'
import { acceptBridges } from './mcp/upgrade.js'
import { createOperations } from './operations/operations.js'
import { recover } from './operations/recovery.js'
import { prune } from './operations/retention.js'
import { ownerRoutes } from './owner/app.js'
import { createOwnerAuth } from './owner/auth.js'
import { createOwnerFront } from './owner/front.js'
import { loginUrl } from './owner/open.js'
import { recordActions } from './owner/record-actions.js'
import { createProcesses } from './processes/processes.js'
import { createSessions } from './sessions/sessions.js'
import type { OnCommit } from './store/commits.js'
import { claimHome } from './store/lock.js'
import { openStore } from './store/store.js'
import { argumentsOf } from './tools/arguments-of.js'
import { changeLocks, leaveChangeLocks } from './workspace/change-lock.js'
import { createHomeFence } from './workspace/fence.js'

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

const PRUNE_EVERY_MS = 3_600_000

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
    const parts = await open({ paths, clock, onCommit, undo, ...given })
    const listeners = await listen(parts, () => setImmediate(() => void close()))
    return { ...listeners, pid: process.pid, home: paths.dir, socket: paths.socket, close, closed: closed.promise }
  } catch (error) {
    // Why it did not start matters more than what then could not be closed.
    await close().catch((closing: unknown) => process.emitWarning(`after a failed start: ${messageOf(closing)}`))
    throw error
  }
}

type Step = () => void | Promise<void>

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

interface Opening {
  paths: HomePaths
  config: Config
  locate?: LoadedConfig['locate']
  reload?: () => Promise<LoadedConfig>
  clock: Clock
  onCommit: OnCommit | undefined
  undo: Step[]
}

type Parts = Awaited<ReturnType<typeof open>>

/** Everything that works behind the listeners; work of an earlier host is settled when this returns (GU-05). */
async function open({ paths, config, clock, onCommit, undo, locate = () => undefined, reload }: Opening) {
  const secrets = readSecrets(paths)
  const log = createLog({ file: join(paths.logs, 'kiki.log') }, config.log.level)
  undo.push(() => log.close())
  const files = { database: paths.database, marker: join(paths.keys, 'database'), ballast: paths.ballast }
  const store = openStore(
    files,
    (error) => log.error({ error: messageOf(error) }, 'the record of a read was lost'),
    onCommit,
  )
  undo.push(() => store.close())
  const audit = createAudit({ store, ...openAuditFiles(paths.keys), clock, log })
  undo.push(() => audit.close())
  const bootId = newId('boot', clock.now())
  const events = createEvents((event, error) =>
    log.error({ event, error: messageOf(error) }, 'an event handler failed'),
  )
  events.on('operation.changed', ({ operationId, connectionId, sessionRef, status }) =>
    log.debug({ operation: operationId, connection: connectionId, session: sessionRef, status }, 'operation'),
  )
  const locks = changeLocks(log)
  undo.push(() => leaveChangeLocks(locks))
  const fence = createHomeFence(paths.dir, locks)
  const rules = createStandingRules({ store, clock, argumentsOf })
  const settings = createSettings({ loaded: { config, locate }, file: paths.config, reload, rules, argumentsOf, log })
  const connections = createConnections({ store, clock, defaults: config.calls })
  const sessions = createSessions({ store, clock, connections, profiles: () => settings.current().profiles, fence })
  const operations = createOperations({ store, audit, clock, events, log, bootId })
  const lifecycle = createLifecycle({
    store,
    audit,
    clock,
    events,
    connections,
    sessions,
    operations,
    changesFolder: paths.changes,
  })
  const approvals = createApprovals({
    ...{ store, audit, clock, events, log, operations, rules },
    expiry: () => durationMs(settings.current().approvals.expiry),
    dispatch: (row) => runClaimed(gate, row),
  })
  const processes = createProcesses({ dir: paths.run, log, env: environment() })
  undo.push(
    () => processes.close(),
    () => lifecycle.stopAll(),
  )
  const credentials = createCredentials({ key: secrets.credentialKey, homeId: secrets.homeId, clock })
  const externalClients = config.experimental.external_clients
  const gate: GateDeps = {
    audit,
    scripts: createScripts(),
    config: settings.current,
    rules,
    approvals,
    store,
    connections,
    sessions,
    operations,
    processes,
    rate: createRateLimit(clock),
    clock,
    log,
    fence,
    changesFolder: paths.changes,
    externalClients,
  }
  const parts = {
    paths,
    config,
    clock,
    undo,
    secrets,
    log,
    store,
    audit,
    bootId,
    events,
    fence,
    connections,
    sessions,
    operations,
    lifecycle,
    settings,
    rules,
    approvals,
    processes,
    credentials,
    externalClients,
    gate,
    reload: () => settings.reload(lifecycle),
  }
  await settlePast(parts)
  undo.push(keepPruning(parts), approvals.keepExpiring(), settings.watch(lifecycle))
  return parts
}

/** Ends, puts back and dispatches what a dead host left (GU-05). */
async function settlePast(parts: Parts): Promise<void> {
  const { store, audit, clock, events, log, bootId, paths, gate, undo } = parts
  await store.commits.vital(() => {
    store.boots.begin(bootId, process.pid, clock.now())
    audit.started({ boot: bootId, pid: process.pid, version: readVersion() })
  })
  undo.push(() =>
    store.commits.vital(() => {
      store.boots.end(bootId, clock.now())
      audit.append({ actor: 'host', action: 'host.stopped', detail: { boot: bootId } })
    }),
  )
  const { accepted, waiting, unknown } = await recover({
    store,
    audit,
    clock,
    events,
    log,
    bootId,
    changesFolder: paths.changes,
  })
  if (unknown > 0) log.warn({ operations: unknown }, 'the outcome of operations of an earlier host is unknown')
  for (const row of waiting) adopt(gate, row)
  for (const row of accepted) {
    runClaimed(gate, row).catch((error: unknown) =>
      log.error({ operation: row.id, error: messageOf(error) }, 'an accepted operation could not be dispatched'),
    )
  }
}

/** Removes what is past its time, at start and every hour, in small steps (OP-07, GU-45). */
function keepPruning({
  store,
  clock,
  log,
  paths,
  config,
}: Pick<Parts, 'store' | 'clock' | 'log' | 'paths' | 'config'>): Step {
  let stopped = false
  const retention = { days: config.retention.days, tombstoneDays: config.retention.tombstone_days }
  const run = async () => {
    while (!stopped && (await prune({ store, clock, changesFolder: paths.changes }, retention))) await nextTurn()
  }
  const start = () => void run().catch((error: unknown) => log.error({ error: messageOf(error) }, 'pruning failed'))
  const timer = setInterval(start, PRUNE_EVERY_MS)
  timer.unref()
  start()
  return () => {
    stopped = true
    clearInterval(timer)
  }
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

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

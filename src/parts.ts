import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createApprovals } from './approvals/approvals.js'
import { createAudit } from './audit/audit.js'
import { openAuditFiles } from './audit/head-file.js'
import { adopt, type GateDeps, runClaimed } from './calls/call-tool.js'
import { createScripts } from './calls/command.js'
import { createRateLimit } from './calls/rate.js'
import { durationMs } from './config/duration.js'
import { environment } from './config/environment.js'
import { dataFolder, type HomePaths } from './config/home.js'
import type { LoadedConfig } from './config/load.js'
import { readSecrets } from './config/prepare-home.js'
import type { Config } from './config/schema.js'
import { createEvents } from './events/events.js'
import { createConnections } from './grants/connections.js'
import { createCredentials } from './grants/credentials.js'
import { createStandingRules } from './grants/standing-rules.js'
import type { Clock } from './lib/clock.js'
import { messageOf } from './lib/errors.js'
import { newId } from './lib/ids.js'
import { createLog } from './lib/log.js'
import { readVersion } from './lib/version.js'
import { createLifecycle } from './lifecycle/endings.js'
import { createSettings } from './lifecycle/settings.js'
import { createOperations } from './operations/operations.js'
import { recover } from './operations/recovery.js'
import { prune } from './operations/retention.js'
import { createBackground } from './processes/background.js'
import { type ChildRecords, createChildRecords } from './processes/child-records.js'
import { allowedEnvironment } from './processes/environment.js'
import { createOutputs, type OutputLimits, type Outputs } from './processes/output/outputs.js'
import { type ChildProcesses, createProcesses, launcherCommand, launcherFile } from './processes/processes.js'
import { createSandboxNetwork } from './sandbox/network.js'
import { createSandboxes } from './sandbox/sandboxes.js'
import { createSessions } from './sessions/sessions.js'
import { createWorktrees, type Worktrees } from './sessions/worktrees.js'
import type { OnCommit } from './store/commits.js'
import { openStore } from './store/store.js'
import { argumentsOf } from './tools/arguments-of.js'
import { createShell } from './tools/shell/shell.js'
import { changeLocks, leaveChangeLocks } from './workspace/change-lock.js'
import { createHomeFence } from './workspace/fence.js'

const PRUNE_EVERY_MS = 3_600_000

/** Undone when the host closes, last first. */
export type Step = () => void | Promise<void>

export interface Opening {
  paths: HomePaths
  config: Config
  locate?: LoadedConfig['locate']
  reload?: () => Promise<LoadedConfig>
  clock: Clock
  onCommit: OnCommit | undefined
  undo: Step[]
}

export type Parts = Awaited<ReturnType<typeof openParts>>

/** Everything that works behind the listeners; work of an earlier host is settled when this returns (GU-05). */
export async function openParts(opening: Opening) {
  const { paths, config, clock, undo } = opening
  const secrets = readSecrets(paths)
  const records = openRecords(opening)
  const bootId = newId('boot', clock.now())
  const core = openCore(opening, records, bootId)
  const parts = {
    ...{ paths, config, clock, undo, secrets, bootId },
    ...records,
    ...core,
    credentials: createCredentials({ key: secrets.credentialKey, homeId: secrets.homeId, clock }),
    externalClients: config.experimental.external_clients,
    reload: () => core.settings.reload(core.lifecycle),
  }
  await settlePast(parts)
  undo.push(keepPruning(parts), core.approvals.keepExpiring(), core.settings.watch(core.lifecycle))
  return parts
}

/** What everything else writes to: log, database, audit log, events. */
function openRecords({ paths, config, clock, onCommit, undo }: Opening) {
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
  const events = createEvents((event, error) =>
    log.error({ event, error: messageOf(error) }, 'an event handler failed'),
  )
  events.on('operation.changed', ({ operationId, connectionId, sessionRef, status }) =>
    log.debug({ operation: operationId, connection: connectionId, session: sessionRef, status }, 'operation'),
  )
  return { log, store, audit, events }
}

/** Grants, sessions, operations, approvals and the gate over them. */
function openCore(opening: Opening, { log, store, audit, events }: Records, bootId: string) {
  const { paths, config, clock, undo, locate = () => undefined, reload } = opening
  const locks = changeLocks(log)
  undo.push(() => leaveChangeLocks(locks))
  const fence = createHomeFence(paths.dir, locks)
  const rules = createStandingRules({ store, clock, argumentsOf })
  const settings = createSettings({ loaded: { config, locate }, file: paths.config, reload, rules, argumentsOf, log })
  const connections = createConnections({ store, clock, defaults: config.calls })
  const processes = createProcesses({ dir: paths.run, log, env: environment() })
  const worktrees = createWorktrees({
    ...{ store, clock, log, fence, processes },
    env: environment(),
    folder: join(dataFolder(), 'worktrees'),
  })
  const profiles = () => settings.current().profiles
  const sessions = createSessions({ store, clock, connections, profiles, fence, worktrees })
  const outputs = createOutputs({ dir: paths.output, limits: () => outputLimits(settings.current()), log })
  const operations = createOperations({ store, audit, clock, events, log, bootId, outputs })
  const lifecycle = createLifecycle({
    store,
    audit,
    clock,
    events,
    connections,
    sessions,
    operations,
    changesFolder: paths.changes,
    outputs,
    worktrees,
  })
  const approvals = createApprovals({
    ...{ store, audit, clock, events, log, operations, rules },
    expiry: () => durationMs(settings.current().approvals.expiry),
    dispatch: (row) => runClaimed(gate, row),
  })
  const hands = openHands(opening, { store, log }, { processes, outputs, config: settings.current })
  hands.shell.followGrants({ events, connections, sessions })
  undo.push(
    () => processes.close(),
    ...hands.undo,
    () => lifecycle.stopAll(),
  )
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
    shell: hands.shell,
    rate: createRateLimit(clock),
    clock,
    log,
    fence,
    changesFolder: paths.changes,
    scratch: join(paths.run, 'scratch'),
    externalClients: config.experimental.external_clients,
  }
  return {
    ...{ fence, rules, settings, connections, sessions, operations, lifecycle, approvals, processes, gate },
    ...{ outputs, worktrees, children: hands.children, sandboxes: hands.sandboxes, background: hands.background },
  }
}

/** Commands: where they run, what they leave running, and what undoes it, last first. */
function openHands(
  { paths, clock }: Opening,
  { store, log }: Pick<Records, 'store' | 'log'>,
  { processes, outputs, config }: { processes: ChildProcesses; outputs: Outputs; config: () => Config },
) {
  const children = createChildRecords({ store, clock })
  const background = createBackground({ store, outputs, clock, log })
  const network = createSandboxNetwork(log)
  const sandboxes = createSandboxes({
    ...{ network, processes, children, log, config, dir: paths.run, platform: process.platform },
    ...{ env: allowedEnvironment(environment()), launcher: launcherCommand(launcherFile()) },
    programFolder: fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, ''),
  })
  const hostEnvironment = environment()
  const shell = createShell({ processes, sandboxes, children, outputs, background, config, hostEnvironment })
  const undo: Step[] = [
    () => network.close(),
    () => sandboxes.closeAll(),
    () => background.end(() => true).then(() => undefined),
  ]
  return { children, background, sandboxes, shell, undo }
}

type Records = ReturnType<typeof openRecords>
type PastParts = Records &
  Pick<Opening, 'clock' | 'paths' | 'undo'> & {
    gate: GateDeps
    bootId: string
    outputs: Outputs
    children: ChildRecords
    worktrees: Pick<Worktrees, 'settle'>
  }

/** Ends, puts back and dispatches what a dead host left (GU-05). */
async function settlePast(parts: PastParts): Promise<void> {
  const { store, audit, clock, events, log, bootId, paths, gate, undo, outputs, children } = parts
  rmSync(gate.scratch, { recursive: true, force: true })
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
  await store.commits.durable(() => store.processes.loseRunning(clock.now()))
  await parts.worktrees.settle()
  const left = await children.endLeft()
  if (left > 0) log.warn({ children: left }, 'what an earlier host had started was still there and was ended')
  const { accepted, waiting, unknown } = await recover({
    outputs,
    store,
    audit,
    clock,
    events,
    log,
    bootId,
    changesFolder: paths.changes,
  })
  if (unknown > 0) log.warn({ operations: unknown }, 'the outcome of operations of an earlier host is unknown')
  for (const row of waiting) {
    try {
      adopt(gate, row)
    } catch (error) {
      log.error({ operation: row.id, error: messageOf(error) }, 'an operation that waits cannot be waited for')
    }
  }
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
  outputs,
}: Pick<Opening, 'clock' | 'paths' | 'config'> & Pick<Records, 'store' | 'log'> & { outputs: Outputs }): Step {
  let stopped = false
  const retention = { days: config.retention.days, tombstoneDays: config.retention.tombstone_days }
  const run = async () => {
    while (!stopped && (await prune({ store, clock, changesFolder: paths.changes, outputs }, retention)))
      await nextTurn()
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

const MB = 1024 * 1024

function outputLimits({ storage }: Config): OutputLimits {
  return { operation: storage.operation_output_mb * MB, total: storage.total_output_mb * MB }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

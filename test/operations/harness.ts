import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAudit } from '../../src/audit/audit.js'
import { openAuditFiles } from '../../src/audit/head-file.js'
import { createEvents } from '../../src/events/events.js'
import { createConnections } from '../../src/grants/connections.js'
import type { Clock } from '../../src/lib/clock.js'
import { silentLog } from '../../src/lib/log.js'
import { createLifecycle } from '../../src/lifecycle/endings.js'
import type { ClaimRequest } from '../../src/operations/claim.js'
import { createOperations } from '../../src/operations/operations.js'
import { createProcesses } from '../../src/processes/processes.js'
import { createSessions } from '../../src/sessions/sessions.js'
import { createWorktrees } from '../../src/sessions/worktrees.js'
import { openStore } from '../../src/store/store.js'
import { createHomeFence } from '../../src/workspace/fence.js'
import { testOutputs } from '../helpers/shell.js'

/** The middle of the host on a real database, with a clock that the test moves. */
export async function openCore() {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-core-')))
  const home = join(base, 'home')
  const workspace = join(base, 'ws')
  const changesFolder = join(home, 'changes')
  for (const folder of [home, workspace, changesFolder, join(home, 'keys')]) mkdirSync(folder)
  const time = { now: Date.parse('2026-01-01T00:00:00Z') }
  const clock: Clock = { now: () => time.now, monotonic: () => time.now }
  const store = openStore({ database: join(home, 'kiki.db'), marker: join(home, 'marker') }, (error) => {
    throw error
  })
  const files = openAuditFiles(join(home, 'keys'))
  const audit = createAudit({ store, ...files, clock, log: silentLog })
  const events = createEvents((_, error) => {
    throw error
  })
  const fence = createHomeFence(home)
  const connections = createConnections({ store, clock, defaults: {} })
  const processes = createProcesses({ dir: join(home, 'run'), log: silentLog, env: process.env })
  const worktrees = createWorktrees({
    ...{ store, clock, log: silentLog, fence, processes, env: process.env },
    folder: join(base, 'data/worktrees'),
  })
  const sessions = createSessions({ store, clock, connections, profiles: () => ({}), fence, worktrees })
  const outputs = testOutputs(home)
  const operations = createOperations({ store, audit, clock, events, log: silentLog, bootId: 'boot_test', outputs })
  const lifecycle = createLifecycle({
    store,
    audit,
    clock,
    events,
    connections,
    sessions,
    operations,
    changesFolder,
    outputs,
    worktrees,
  })
  const { connection } = await connections.create({
    name: 'test',
    kind: 'local',
    grant: { ceiling: 'full' },
    expires_at: null,
  })
  const session = await sessions.create({ connection: connection.id, workspace })

  /** What a keyed side effect asks for. */
  function request(key: string | undefined, args: unknown = {}): ClaimRequest {
    return {
      connection: connections.require(connection.id),
      session,
      tool: 'Write',
      effect: 'write',
      args,
      key,
      client: undefined,
      decision: { kind: 'allow', by: 'test', reason: '' },
      lanes: [],
    }
  }
  return {
    ...{
      base,
      changesFolder,
      outputs,
      time,
      clock,
      store,
      audit,
      events,
      connections,
      sessions,
      operations,
      lifecycle,
      connection,
      session,
    },
    request,
    close() {
      audit.close()
      store.close()
      rmSync(base, { recursive: true, force: true })
    },
  }
}

export type Core = Awaited<ReturnType<typeof openCore>>

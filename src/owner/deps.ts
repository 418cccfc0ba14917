import type { Approvals } from '../approvals/approvals.js'
import type { Audit } from '../audit/audit.js'
import type { GateDeps } from '../calls/call-tool.js'
import type { HomePaths } from '../config/home.js'
import type { Events } from '../events/events.js'
import type { Connections } from '../grants/connections.js'
import type { Credentials } from '../grants/credentials.js'
import type { StandingRules } from '../grants/standing-rules.js'
import type { Clock } from '../lib/clock.js'
import type { Log } from '../lib/log.js'
import type { Lifecycle } from '../lifecycle/endings.js'
import type { Reloaded } from '../lifecycle/settings.js'
import type { Operations } from '../operations/operations.js'
import type { Background } from '../processes/background.js'
import type { Sandboxes } from '../sandbox/sandboxes.js'
import type { Sessions } from '../sessions/sessions.js'
import type { Worktrees } from '../sessions/worktrees.js'
import type { Store } from '../store/store.js'
import type { OwnerAuth } from './auth.js'

/** What the owner API works on. */
export interface OwnerDeps {
  auth: OwnerAuth
  store: Store
  connections: Connections
  sessions: Sessions
  worktrees: Pick<Worktrees, 'get'>
  operations: Operations
  lifecycle: Lifecycle
  approvals: Approvals
  rules: StandingRules
  events: Events
  /** Reads `config.toml` again (CF-04). */
  reload: () => Promise<Reloaded>
  credentials: Credentials
  background: Background
  sandboxes: Pick<Sandboxes, 'engine'>
  /** What the owner's own calls run with. */
  gate: GateDeps
  audit: Audit
  clock: Clock
  log: Log
  host: HostFacts
  paths: HomePaths
  /** Ends the host after the answer has left. */
  stop: () => void
  /** Whether clients may use Kiki at all (GR-01). */
  externalClients: boolean
}

export interface HostFacts {
  pid: number
  version: string
  home: string
  startedAt: number
  /** The start on the clock that never steps, for the uptime (GU-44). */
  startedSteady: number
  ownerUrl: () => string
}

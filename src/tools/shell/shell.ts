import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/schema.js'
import type { Events } from '../../events/events.js'
import type { Connections } from '../../grants/connections.js'
import type { Background } from '../../processes/background.js'
import type { ChildRecords } from '../../processes/child-records.js'
import type { CommandSpawnOptions, RunningCommand } from '../../processes/command.js'
import type { Outputs } from '../../processes/output/outputs.js'
import type { ChildProcesses } from '../../processes/processes.js'
import type { AllowedHosts } from '../../sandbox/network.js'
import { noSandbox, type Sandboxes, type SandboxTerms } from '../../sandbox/sandboxes.js'
import { secretPlaces } from '../../sandbox/secret-places.js'
import type { Sessions } from '../../sessions/sessions.js'
import { type GuardedPlaces, guardedPlaces } from '../../workspace/guarded-places.js'
import type { Workspace } from '../../workspace/workspace.js'

/** Whose commands they are, and what the owner allows them. */
export interface CommandTerms {
  session: string
  connection: string
  policyVersion: number
  sandbox: 'required' | 'preferred' | 'off'
  network: 'off' | 'on' | readonly string[]
}

/** Where a command runs. */
export interface CommandPlace {
  confined: boolean
  /** For a confined command that may use the network, though its sandbox has one of its own. */
  allow(hosts: AllowedHosts): Promise<{ env: Record<string, string>; revoke(): void }>
  run(options: Omit<CommandSpawnOptions, 'beforeExec'>): Promise<RunningCommand>
  /** What a command has made that must not be there; it is removed. */
  removePlanted(): string[]
}

/** What the shell tools use beyond one call. */
export interface Shell {
  /** @throws KikiError `sandbox_unavailable` where a sandbox is required and none works (SB-02). */
  place(terms: CommandTerms, workspace: Workspace): Promise<CommandPlace>
  /**
   * Whether commands of these terms have the owner's own rights (SB-02, SB-04).
   * @throws KikiError `sandbox_unavailable` where a sandbox is required and none works.
   */
  isUnconfined(sandbox: CommandTerms['sandbox']): Promise<boolean>
  outputs: Outputs
  background: Background
  config: () => Config
  /** The host's environment, of which commands get the allow-listed part (SH-06). */
  hostEnvironment: Readonly<Record<string, string | undefined>>
  /** Ends what runs beyond its call when its grant or session ends or changes; whoever changes them waits for that (GU-30). */
  followGrants(of: { events: Events; connections: Connections; sessions: Sessions }): void
}

export interface ShellDeps {
  processes: ChildProcesses
  sandboxes: Sandboxes
  children: ChildRecords
  outputs: Outputs
  background: Background
  config: () => Config
  hostEnvironment: Readonly<Record<string, string | undefined>>
}

export function createShell(deps: ShellDeps): Shell {
  const { processes, sandboxes, children, outputs, background, config, hostEnvironment } = deps
  const here: CommandPlace = {
    confined: false,
    removePlanted: () => [],
    allow: () => Promise.resolve({ env: {}, revoke: () => undefined }),
    async run(options) {
      let forget: (() => void) | undefined
      const command = await processes.command({
        ...options,
        async beforeExec(record) {
          forget = await children.add(record)
        },
      })
      const over = () => forget?.()
      command.exited.then(over, over)
      return command
    },
  }

  /** The terms of each session's newest sandbox. */
  const placed = new Map<string, CommandTerms>()

  async function close(session: string): Promise<void> {
    placed.delete(session)
    await sandboxes.close(session)
  }

  async function isUnconfined(sandbox: CommandTerms['sandbox']): Promise<boolean> {
    if (sandbox === 'off') return true
    const engine = await sandboxes.engine()
    if ('start' in engine) return false
    if (sandbox === 'required') throw noSandbox(engine)
    return true
  }

  return {
    ...{ isUnconfined, outputs, background, config, hostEnvironment },
    async place(terms, workspace) {
      if (await isUnconfined(terms.sandbox)) return here
      const sandbox = await sandboxes.open(terms.session, termsOf(deps, terms, workspace))
      placed.set(terms.session, terms)
      return { confined: true, run: sandbox.command, removePlanted: sandbox.removePlanted, allow: sandbox.allow }
    },
    followGrants({ events, connections, sessions }) {
      events.on('connection.changed', async ({ connectionId }) => {
        const now = connections.get(connectionId)
        const policy = now === undefined || now.status === 'revoked' ? undefined : now.policyVersion
        await background.end((row) => row.connection_id === connectionId && row.policy_version !== policy)
        const stale = [...placed.values()].filter(
          ({ connection, policyVersion }) => connection === connectionId && policyVersion !== policy,
        )
        await Promise.all(stale.map(({ session }) => close(session)))
      })
      events.on('session.changed', async ({ sessionRef }) => {
        if (sessions.get(sessionRef)?.status === 'open') return
        await background.end((row) => row.session_ref === sessionRef)
        await close(sessionRef)
      })
    },
  }
}

/** What a session's sandbox shows and lets be changed (SB-01). */
function termsOf({ config, sandboxes }: ShellDeps, { network }: CommandTerms, workspace: Workspace): SandboxTerms {
  const guarded = workspace.roots.map((root) => guardedPlaces(root, sandboxes.isPlaceholder))
  const all = (pick: keyof GuardedPlaces) => [...new Set(guarded.flatMap((places) => places[pick]))]
  return {
    workspace: workspace.root,
    writable: [...new Set([...workspace.roots, ...all('writable'), ...cachesOf(config())])],
    frozen: all('frozen'),
    fixed: all('fixed'),
    absent: all('absent'),
    forbidden: all('forbidden'),
    hidden: [{ path: workspace.home, kind: 'folder' }, ...secretPlaces(homedir())],
    network: network === 'on',
  }
}

/** `sandbox.caches`, made where they are missing. */
export function cachesOf(config: Config): string[] {
  return config.sandbox.caches.map((given) => {
    const path = given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : given
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 })
    return realpathSync.native(path)
  })
}

import type { Config } from '../config/schema.js'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Processes } from '../processes/processes.js'
import { bubblewrap, bubblewrapProbe } from './bubblewrap.js'
import type { ConfinedStart } from './confinement.js'
import { docker } from './docker.js'
import { seatbelt } from './seatbelt.js'

export type EngineName = 'bubblewrap' | 'seatbelt' | 'docker'

/** What confines commands here, or why nothing does. */
export type Engine =
  | { name: EngineName; start: ConfinedStart }
  | { name: EngineName | undefined; problem: string; hint: string }

export interface EngineDeps {
  processes: Processes
  config: () => Config
  /** Kiki's package: the folder that holds `dist/` and `node_modules/`. */
  programFolder: string
  platform: NodeJS.Platform
}

/** Looks for the engine and tries it, with all that a sandbox asks of it (SB-02). */
export async function findEngine(deps: EngineDeps): Promise<Engine> {
  if (deps.config().sandbox.engine === 'docker') return dockerEngine(deps)
  if (deps.platform === 'linux') return tried(deps, 'bubblewrap', bubblewrapProbe(), bubblewrap, INSTALL_BUBBLEWRAP)
  if (deps.platform === 'darwin') {
    const probe = ['/usr/bin/sandbox-exec', '-p', '(version 1)(allow default)', '/usr/bin/true'] as const
    return tried(deps, 'seatbelt', probe, seatbelt, 'macOS brings it along; a managed machine may forbid it.')
  }
  return {
    name: undefined,
    problem: `There is no sandbox for ${deps.platform} here.`,
    hint: 'Set sandbox.engine = "docker" in config.toml, or set the connection\'s sandbox to preferred or off.',
  }
}

const INSTALL_BUBBLEWRAP =
  'Install the package bubblewrap (`apt install bubblewrap`). Where it is installed, user namespaces may be forbidden: see kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns.'

async function tried(
  { processes }: EngineDeps,
  name: EngineName,
  probe: readonly [string, ...string[]],
  start: ConfinedStart,
  hint: string,
): Promise<Engine> {
  const problem = await problemOf(processes, probe)
  return problem === undefined ? { name, start } : { name, problem: `${name} does not work here: ${problem}`, hint }
}

async function dockerEngine({ processes, config, programFolder }: EngineDeps): Promise<Engine> {
  const { docker_image: image, memory_mb, cpus, processes: count } = config().sandbox
  const hint = `Start Docker, and pull the image: docker pull ${image}`
  const problem = await problemOf(processes, ['docker', 'image', 'inspect', '--format', 'ok', image])
  if (problem !== undefined) return { name: 'docker', problem: `docker does not work here: ${problem}`, hint }
  const user = `${process.getuid?.() ?? 1000}:${process.getgid?.() ?? 1000}`
  return {
    name: 'docker',
    start: (confinement, launcher) =>
      docker(confinement, { ...launcher, programFolder, user }, { image, memory_mb, cpus, processes: count }),
  }
}

/** Milliseconds that a try may take. */
const PROBE_MS = 10_000

async function problemOf(processes: Processes, argv: readonly [string, ...string[]]): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(PROBE_MS)
    const { exitCode, stderr } = await processes.run({ argv, cwd: '/', signal, onStdout: () => true })
    if (exitCode === 0) return undefined
    return stderr.trim().split('\n').slice(-3).join(' ') || `it ended with ${exitCode}`
  } catch (error) {
    if (error instanceof KikiError) return error.message
    return messageOf(error)
  }
}

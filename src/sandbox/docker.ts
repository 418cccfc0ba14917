import { join } from 'node:path'
import type { LauncherStart } from '../processes/link.js'
import { type Confinement, DOOR_INSIDE, type LauncherFacts } from './confinement.js'

export interface DockerLimits {
  /** An image with bash, coreutils and Node.js 20 or newer. */
  image: string
  memory_mb: number
  cpus: number
  processes: number
}

/** Where Kiki's own program is seen in the container. */
const PROGRAM_INSIDE = '/opt/kiki'

/**
 * Runs a launcher in a container (SB-03): no capabilities, no new privileges, a read-only root, limits of memory, processors
 * and processes, `/tmp` without programs, no network unless granted. The image's Node.js runs it. The container goes with its
 * launcher, whose standard input ends with the host.
 * @param programFolder Kiki's package, with `dist/` and `node_modules/`.
 */
export function docker(
  confinement: Confinement,
  launcher: LauncherFacts & { programFolder: string; user: string },
  limits: DockerLimits,
): LauncherStart {
  const { workspace, writable, frozen, hidden, network } = confinement
  const within = (path: string) => writable.some((root) => path === root || path.startsWith(`${root}/`))
  const [, ...rest] = launcher.argv
  const argv: [string, ...string[]] = [
    'docker',
    ...['run', '--rm', '--interactive', '--init', '--pull', 'never'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only', '--user', launcher.user],
    ...['--memory', `${limits.memory_mb}m`, '--memory-swap', `${limits.memory_mb}m`],
    ...['--cpus', String(limits.cpus), '--pids-limit', String(limits.processes)],
    ...['--tmpfs', '/tmp:rw,nosuid,nodev,noexec', '--network', network ? 'bridge' : 'none'],
    ...writable.flatMap((path) => mount(path, path)),
    ...frozen.filter(within).flatMap((path) => mount(path, path, true)),
    ...hidden
      .filter(({ path }) => within(path))
      .flatMap(({ path, kind }) =>
        kind === 'folder' ? ['--tmpfs', `${path}:ro,size=4k`] : mount('/dev/null', path, true),
      ),
    ...mount(launcher.programFolder, PROGRAM_INSIDE, true),
    ...mount(launcher.door, DOOR_INSIDE),
    ...['--workdir', workspace],
    ...Object.keys(launcher.env).flatMap((name) => ['--env', name]),
    limits.image,
    'node',
    ...rest.map((word) => word.replace(launcher.programFolder, PROGRAM_INSIDE)),
  ]
  return { argv, env: launcher.env, address: join(DOOR_INSIDE, 's') }
}

function mount(source: string, target: string, readOnly = false): string[] {
  const quote = (path: string) => (/[",]/.test(path) ? `"${path.replaceAll('"', '""')}"` : path)
  return ['--mount', `type=bind,source=${quote(source)},target=${quote(target)}${readOnly ? ',readonly' : ''}`]
}

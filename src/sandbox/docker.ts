import { basename, join } from 'node:path'
import type { LauncherStart } from '../processes/link.js'
import { type Confinement, DOOR_INSIDE, type HiddenPlace, isWithin, type LauncherFacts } from './confinement.js'

export interface DockerLimits {
  /** An image with bash, coreutils and Node.js 20 or newer, each where its own PATH finds it. */
  image: string
  memory_mb: number
  cpus: number
  processes: number
}

/** Where Kiki's own program is seen in the container. */
const PROGRAM_INSIDE = '/opt/kiki'

/** Of the launcher's own environment; programs are where the image has them, not where this machine does. */
const PASSED = /^(LANG|LANGUAGE|LC_[A-Z]+|TZ)$/

/**
 * Runs a launcher in a container (SB-03): no capabilities, no new privileges, a read-only root, limits of memory, processors
 * and processes, `/tmp` without programs, no network unless granted. The image's Node.js runs it, and nothing else of the
 * image: neither its entry point nor its health check. The container ends with its launcher, whose standard input ends with
 * the host; since a command could hold the launcher up, it is removed by name as well. Not tried with Docker's own server.
 * @param programFolder Kiki's package, with `dist/` and `node_modules/`.
 */
export function docker(
  confinement: Confinement,
  launcher: LauncherFacts & { programFolder: string; user: string },
  limits: DockerLimits,
): LauncherStart {
  const { workspace, network } = confinement
  const [, ...rest] = launcher.argv
  const name = `kiki-${basename(launcher.door)}`
  const argv: [string, ...string[]] = [
    'docker',
    ...['run', '--rm', '--interactive', '--init', '--pull', 'never', '--name', name],
    // What the launcher says would be kept on this machine's disk, as much as commands make of it.
    ...['--log-driver', 'none', '--no-healthcheck', '--entrypoint', 'node'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only', '--user', launcher.user],
    ...['--memory', `${limits.memory_mb}m`, '--memory-swap', `${limits.memory_mb}m`],
    ...['--cpus', String(limits.cpus), '--pids-limit', String(limits.processes)],
    ...['--tmpfs', '/tmp:rw,nosuid,nodev,noexec', '--network', network ? 'bridge' : 'none'],
    ...places(confinement),
    ...bind(launcher.programFolder, PROGRAM_INSIDE, true),
    ...bind(launcher.door, DOOR_INSIDE),
    ...['--workdir', workspace],
    ...Object.keys(launcher.env).flatMap((name) => (PASSED.test(name) ? ['--env', name] : [])),
    limits.image,
    ...rest.map((word) => inside(word, launcher.programFolder)),
  ]
  return { argv, env: launcher.env, address: join(DOOR_INSIDE, 's'), stop: ['docker', 'rm', '--force', name] }
}

/** Docker mounts what lies deeper later, whatever the order here, and refuses two mounts on one place. */
function places({ writable, frozen, fixed, hidden }: Confinement): string[] {
  const granted = (path: string) => writable.some((root) => isWithin(path, root))
  const held = new Set([...frozen, ...writable])
  return [
    ...writable.flatMap((path) => bind(path, path)),
    // A mount cannot be moved away; its folder could be, with what is read-only in it.
    ...fixed.filter((path) => granted(path) && !held.has(path)).flatMap((path) => bind(path, path)),
    ...frozen.filter((path) => granted(path) && !writable.includes(path)).flatMap((path) => bind(path, path, true)),
    // What was granted by its own name is seen.
    ...hidden.filter(({ path }) => granted(path) && !held.has(path)).flatMap(hide),
  ]
}

function hide({ path, kind }: HiddenPlace): string[] {
  if (kind === 'file') return bind('/dev/null', path, true)
  return mount(['type=tmpfs', `target=${path}`, 'tmpfs-size=4096', 'readonly'])
}

function bind(source: string, target: string, readOnly = false): string[] {
  return mount(['type=bind', `source=${source}`, `target=${target}`, ...(readOnly ? ['readonly'] : [])])
}

/** Fields as Docker's client reads them: a line of CSV, in which a quote may only stand around a whole field. */
function mount(fields: readonly string[]): string[] {
  const quoted = fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field))
  return ['--mount', quoted.join(',')]
}

function inside(word: string, programFolder: string): string {
  return isWithin(word, programFolder) ? `${PROGRAM_INSIDE}${word.slice(programFolder.length)}` : word
}

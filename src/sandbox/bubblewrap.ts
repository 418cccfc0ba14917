import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { LauncherStart } from '../processes/link.js'
import { type Confinement, DOOR_INSIDE, type HiddenPlace, isWithin, type LauncherFacts } from './confinement.js'

/** Sockets of the system's services (containers, buses, agents) are in `/run`; of it only this is needed by programs. */
const RUN_KEPT = ['/run/systemd/resolve', '/run/NetworkManager/resolv.conf', '/run/resolvconf', '/run/current-system']
/** Replaced by folders of the sandbox's own. */
const REPLACED = ['/tmp', '/var/tmp', '/run', '/dev', '/proc']

/**
 * Runs a launcher in one world of its own (user, process, mount and, without the machine's network, network namespaces; no
 * capabilities), which ends with its parent (design §2). Mounts are made in their order, later ones on top.
 */
export function bubblewrap(confinement: Confinement, launcher: LauncherFacts): LauncherStart {
  return {
    argv: ['bwrap', ...bubblewrapOptions(confinement, launcher.door), '--', ...launcher.argv],
    env: launcher.env,
    address: join(DOOR_INSIDE, 's'),
  }
}

export function bubblewrapOptions(confinement: Confinement, door: string): string[] {
  const { workspace, writable, temporary, frozen, fixed, hidden, programs, network } = confinement
  // What the owner granted although it lies in a hidden folder is seen; what is hidden in a granted folder is not.
  const [around, inside] = parted(hidden, ({ path }) => writable.some((root) => isWithin(root, path)))
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(network ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', '/run', ...RUN_KEPT.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path])],
    ...['--bind', temporary, '/tmp', '--tmpfs', '/var/tmp'],
    ...around.flatMap(hide),
    ...programs.filter((path) => isMasked(path, hidden)).flatMap((path) => ['--ro-bind', path, path]),
    ...writable.flatMap((path) => ['--bind', path, path]),
    ...inside.flatMap(hide),
    ...fixed.flatMap((path) => ['--bind', path, path]),
    ...frozen.flatMap((path) => ['--ro-bind', path, path]),
    ...['--bind', door, DOOR_INSIDE, '--chdir', workspace],
  ]
}

function hide({ path, kind }: HiddenPlace): string[] {
  return kind === 'folder' ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

function isMasked(path: string, hidden: readonly HiddenPlace[]): boolean {
  return [...REPLACED, ...hidden.map((place) => place.path)].some((folder) => isWithin(path, folder))
}

function parted<T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] {
  return [all.filter(test), all.filter((one) => !test(one))]
}

/** What tells whether it works here: all that is asked of the system, around a program that does nothing. */
export function bubblewrapProbe(): readonly [string, ...string[]] {
  return [
    'bwrap',
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net', '--die-with-parent'],
    ...['--new-session', '--cap-drop', 'ALL', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--', 'true'],
  ]
}

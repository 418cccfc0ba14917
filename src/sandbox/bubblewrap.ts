import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { LauncherStart } from '../processes/link.js'
import {
  type Confinement,
  DOOR_INSIDE,
  depthOf,
  type HiddenPlace,
  isWithin,
  type LauncherFacts,
} from './confinement.js'

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
  const { workspace, temporary, frozen, fixed, network } = confinement
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(network ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', '/run', ...RUN_KEPT.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path])],
    ...['--bind', temporary, '/tmp', '--tmpfs', '/var/tmp'],
    ...layers(confinement),
    ...fixed.flatMap((path) => ['--bind', path, path]),
    ...frozen.flatMap((path) => ['--ro-bind', path, path]),
    ...['--bind', door, DOOR_INSIDE, '--chdir', workspace],
  ]
}

/** What is granted and what is hidden, the deeper later: each lies over what is around it. A hidden place that was granted by its own name is seen. */
function layers({ writable, hidden, programs }: Confinement): string[] {
  const all = [
    ...hidden.filter(({ path }) => !writable.includes(path)).map((place) => ({ path: place.path, words: hide(place) })),
    ...programs.filter((path) => isMasked(path, hidden)).map((path) => ({ path, words: ['--ro-bind', path, path] })),
    ...writable.map((path) => ({ path, words: ['--bind', path, path] })),
  ]
  return all.toSorted((a, b) => depthOf(a.path) - depthOf(b.path)).flatMap(({ words }) => words)
}

function hide({ path, kind }: HiddenPlace): string[] {
  return kind === 'folder' ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path]
}

function isMasked(path: string, hidden: readonly HiddenPlace[]): boolean {
  return [...REPLACED, ...hidden.map((place) => place.path)].some((folder) => isWithin(path, folder))
}

/** What tells whether it works here: all that is asked of the system, around a program that does nothing. */
export function bubblewrapProbe(): readonly [string, ...string[]] {
  return [
    'bwrap',
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net', '--die-with-parent'],
    ...['--new-session', '--cap-drop', 'ALL', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--', 'true'],
  ]
}

import { dirname } from 'node:path'
import type { LauncherStart } from '../processes/link.js'
import { type Confinement, depthOf, isWithin, type LauncherFacts } from './confinement.js'

/** Services of the system that ordinary programs need. None opens an application, reads the keychain or starts a job: by such a one a command would leave. */
const SERVICES = [
  ...['com.apple.system.opendirectoryd.libinfo', 'com.apple.system.opendirectoryd.membership'],
  ...['com.apple.bsd.dirhelper', 'com.apple.logd', 'com.apple.system.logger', 'com.apple.system.notification_center'],
]
/** For names of hosts and trust in certificates. */
const NETWORK_SERVICES = [
  ...['com.apple.SystemConfiguration.DNSConfiguration', 'com.apple.SystemConfiguration.configd'],
  ...['com.apple.networkd', 'com.apple.ocspd', 'com.apple.trustd', 'com.apple.trustd.agent'],
]
/** Facts of the machine. Others tell of all processes, with their arguments and environment. */
const SYSCTLS = ['argmax', 'boottime', 'hostname', 'maxfiles', 'maxfilesperproc', 'maxproc', 'ngroups', 'secure_kernel']
const SYSCTLS_MORE = ['tcsm_available', 'tcsm_enable', 'usrstack64', 'version']
const SYSCTL_FAMILIES = ['hw.', 'machdep.', 'vm.', 'kern.os', 'net.routetable.', 'sysctl.proc_']

/**
 * Runs a launcher under macOS's Seatbelt. There the file system is the machine's own, so the temporary folder is named by
 * `TMPDIR` only; loopback is the machine's own too, also where the network is off; and a command that leaves its group may
 * outlive its sandbox, confined as before. Not tried on a Mac.
 */
export function seatbelt(confinement: Confinement, launcher: LauncherFacts): LauncherStart {
  return {
    argv: ['/usr/bin/sandbox-exec', '-p', seatbeltProfile(confinement, launcher.door), ...launcher.argv],
    env: launcher.env,
    address: `${launcher.door}/s`,
  }
}

/** The profile in Seatbelt's own language; of several rules about one thing the last counts. */
export function seatbeltProfile(confinement: Confinement, door: string): string {
  const { frozen, network } = confinement
  const services = network ? [...SERVICES, ...NETWORK_SERVICES] : SERVICES
  return [
    '(version 1)',
    '(deny default)',
    '(allow process-exec process-fork)',
    '(allow signal process-info* (target same-sandbox))',
    '(allow mach-host* ipc-posix-shm ipc-posix-sem)',
    rule('allow mach-lookup', filters('global-name', services)),
    rule('allow sysctl-read', [
      ...filters(
        'sysctl-name',
        [...SYSCTLS, ...SYSCTLS_MORE].map((name) => `kern.${name}`),
      ),
      ...filters('sysctl-name-prefix', SYSCTL_FAMILIES),
    ]),
    '(allow file-read*)',
    ...terminals(),
    ...layers(confinement, door),
    rule('deny file-write*', filters('subpath', frozen)),
    rule('deny file-write-unlink', filters('literal', unmovable(confinement))),
    ...networkRules(network),
    ...socketRules(confinement, door),
  ]
    .filter((one) => one !== undefined)
    .join('\n')
}

/** Devices, and terminals that were made within; what is typed in the owner's is not to be read. */
function terminals(): (string | undefined)[] {
  const devices = filters('literal', ['/dev/null', '/dev/zero', '/dev/tty', '/dev/ptmx'])
  const all = '(regex #"^/dev/ttys[0-9]+")'
  return [
    rule('deny file-read*', [all]),
    rule('allow file-read* file-write* file-ioctl', devices),
    '(allow pseudo-tty)',
    `(allow file-read* file-write* file-ioctl (require-all ${all} (extension "com.apple.sandbox.pty")))`,
  ]
}

interface Layer {
  path: string
  operations: string
}

/** What is granted and what is hidden, the deeper later: each lies over what is around it. A hidden place that was granted by its own name is seen. */
function layers({ writable, temporary, hidden, programs }: Confinement, door: string): (string | undefined)[] {
  const seen = [...writable, temporary, door]
  const all: Layer[] = [
    ...hidden
      .filter(({ path }) => !seen.includes(path))
      .map(({ path }) => ({ path, operations: 'deny file-read* file-write*' })),
    ...programs.map((path) => ({ path, operations: 'allow file-read*' })),
    ...seen.map((path) => ({ path, operations: 'allow file-read* file-write*' })),
  ]
  const ways = [...seen, ...programs].flatMap((path) =>
    above(path).filter((folder) => hidden.some((place) => isWithin(folder, place.path))),
  )
  return [
    ...all
      .toSorted((a, b) => depthOf(a.path) - depthOf(b.path))
      .map(({ path, operations }) => rule(operations, filters('subpath', [path]))),
    // On the way to what is seen: that they are there, not what is in them.
    rule('allow file-read-metadata', filters('literal', unique(ways))),
  ]
}

/** Rules go by paths, so what one is about must not be moved, nor a granted folder that it lies in. */
function unmovable({ writable, frozen, fixed, hidden }: Confinement): string[] {
  const guarded = [...frozen, ...fixed, ...hidden.map(({ path }) => path)]
  const around = guarded.flatMap((path) => [path, ...above(path)])
  return unique([...writable, ...around]).filter((path) => writable.some((root) => isWithin(path, root)))
}

/** Sockets in the file system are told apart below: one of them may be another program's way to everything. */
function networkRules(network: boolean): string[] {
  const where = network ? '*:*' : 'localhost:*'
  const own = [
    `(allow network-bind network-inbound (local ip "${where}"))`,
    `(allow network-outbound (remote ip "${where}"))`,
  ]
  if (!network) return own
  return [...own, '(allow network-outbound (remote unix-socket (literal "/private/var/run/mDNSResponder")))']
}

function socketRules({ writable, temporary, hidden }: Confinement, door: string): (string | undefined)[] {
  const seen = [...writable, temporary, door]
  const within = hidden.filter(({ path }) => !seen.includes(path) && writable.some((root) => isWithin(path, root)))
  const sockets = (side: 'local' | 'remote', paths: readonly string[]) =>
    filters('subpath', paths).map((filter) => `(${side} unix-socket ${filter})`)
  const hiddenPaths = within.map(({ path }) => path)
  return [
    '(allow system-socket (socket-domain AF_UNIX))',
    rule('allow network-bind network-inbound', sockets('local', writable)),
    rule('allow network-outbound', sockets('remote', writable)),
    rule('deny network-bind network-inbound', sockets('local', hiddenPaths)),
    rule('deny network-outbound', sockets('remote', hiddenPaths)),
    rule('allow network-bind network-inbound', sockets('local', [temporary])),
    rule('allow network-outbound', sockets('remote', [temporary, door])),
  ]
}

/** Undefined for a rule about nothing: without filters it would be about everything. */
function rule(operations: string, about: readonly string[]): string | undefined {
  return about.length === 0 ? undefined : `(${operations}\n${about.map((filter) => `  ${filter}`).join('\n')})`
}

function filters(kind: string, names: readonly string[]): string[] {
  return names.map((name) => `(${kind} ${quoted(name)})`)
}

/** The folders around a path, without the root. */
function above(path: string): string[] {
  const folder = dirname(path)
  return folder === path || folder === '/' ? [] : [...above(folder), folder]
}

function unique(paths: readonly string[]): string[] {
  return [...new Set(paths)]
}

function quoted(path: string): string {
  return `"${path.replace(/[\\"]/g, (one) => `\\${one}`)}"`
}

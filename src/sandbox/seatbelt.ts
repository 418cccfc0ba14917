import type { LauncherStart } from '../processes/link.js'
import type { Confinement, LauncherFacts } from './confinement.js'

/**
 * Runs a launcher under macOS's Seatbelt. There the file system is the machine's own, so the temporary folder is named by
 * `TMPDIR` only, and a command that leaves its group outlives its end only until the launcher's. Not tried on a Mac.
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
  const { writable, temporary, frozen, fixed, hidden, programs, network } = confinement
  const subpaths = (paths: readonly string[]) => paths.map((path) => `  (subpath ${quoted(path)})`).join('\n')
  const literals = (paths: readonly string[]) => paths.map((path) => `  (literal ${quoted(path)})`).join('\n')
  const rules = [
    '(version 1)',
    '(deny default)',
    '(allow process-exec process-fork)',
    '(allow signal (target same-sandbox))',
    '(allow sysctl-read mach-lookup ipc-posix-shm pseudo-tty)',
    '(allow file-read* file-ioctl)',
    `(deny file-read* file-write*\n${subpaths(hidden.map(({ path }) => path))})`,
    `(allow file-read*\n${subpaths(programs)})`,
    `(allow file-read* file-write*\n${subpaths([...writable, temporary, door])}\n${literals(['/dev/null', '/dev/tty', '/dev/zero'])})`,
    // What is hidden in a granted folder stays hidden.
    `(deny file-read* file-write*\n${subpaths(hidden.filter(({ path }) => writable.some((root) => path.startsWith(`${root}/`))).map(({ path }) => path))})`,
    `(deny file-write*\n${subpaths(frozen)})`,
    `(deny file-write-unlink\n${literals([...frozen, ...fixed])})`,
    network ? '(allow network*)' : `(allow network* (local ip "localhost:*") (remote ip "localhost:*"))`,
    `(allow network-outbound (subpath ${quoted(door)}))`,
  ]
  return rules.filter((rule) => !/\n\)$/.test(rule)).join('\n')
}

function quoted(path: string): string {
  return `"${path.replace(/[\\"]/g, (one) => `\\${one}`)}"`
}

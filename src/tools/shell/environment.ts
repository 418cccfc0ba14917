import { homedir } from 'node:os'
import { join } from 'node:path'
import { allowedEnvironment } from '../../processes/environment.js'
import { isWithin } from '../../sandbox/confinement.js'

/** Programs that would wait for somebody do not (FC-H01). */
const UNATTENDED = {
  CI: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'true',
}

/** Caches that programs make in the home folder, which a sandbox does not let them write to, and how they are told another place. */
const CACHES: readonly [variable: string, usual: string, name: string][] = [
  ['XDG_CACHE_HOME', '.cache', ''],
  ['npm_config_cache', '.npm', 'npm'],
  ['YARN_CACHE_FOLDER', '.cache/yarn', 'yarn'],
  ['GOMODCACHE', 'go/pkg/mod', 'go-mod'],
  ['GRADLE_USER_HOME', '.gradle', 'gradle'],
]

export interface CommandEnvironment {
  host: Readonly<Record<string, string | undefined>>
  /** `commands.pass_env`. */
  pass: readonly string[]
  /** Of the call. */
  given: Readonly<Record<string, string>>
  terminal: boolean
  operationId: string
  /** What a confined command may write to; undefined where it has the owner's own rights. */
  writable: readonly string[] | undefined
}

/** The whole environment of a command: allow-listed, for nobody who sits there, then what the call sets (SH-06, FC-H01). */
export function commandEnvironment(of: CommandEnvironment): Record<string, string> {
  const { host, pass, given, terminal, operationId, writable } = of
  const passed = Object.fromEntries(pass.flatMap((name) => (host[name] === undefined ? [] : [[name, host[name]]])))
  const { TMPDIR, ...allowed } = allowedEnvironment(host)
  return {
    ...allowed,
    ...(writable === undefined ? (TMPDIR === undefined ? {} : { TMPDIR }) : { TMPDIR: '/tmp', ...caches(writable) }),
    ...UNATTENDED,
    TERM: terminal ? 'xterm-256color' : 'dumb',
    ...passed,
    ...given,
    KIKI_OPERATION_ID: operationId,
  }
}

function caches(writable: readonly string[]): Record<string, string> {
  const missing = CACHES.filter(([, usual]) => !writable.some((root) => isWithin(join(homedir(), usual), root)))
  return Object.fromEntries(missing.map(([variable, , name]) => [variable, join('/tmp/.cache', name)]))
}

import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { KikiError, systemCode } from '../lib/errors.js'
import { shellWord } from '../lib/shell-word.js'

/** Longest socket path in bytes that every platform takes (macOS allows 103, Linux 107; design §2). */
const MAX_SOCKET_PATH_BYTES = 100

/** Where everything of one home stands. All paths are absolute. */
export interface HomePaths {
  dir: string
  config: string
  mcp: string
  database: string
  /** Space that is kept for the ends of operations on a full disk (GU-42). */
  ballast: string
  lock: string
  /** Written by a running host: pid, start time, addresses, socket. */
  hostFile: string
  /** Left by `kiki stop`, removed by `kiki start`; while it stands nothing starts the host by itself (GU-09). */
  stopped: string
  /** The owner and bridge channel; `hostFile` names the one that is really in use. */
  socket: string
  ownerToken: string
  keys: string
  media: string
  logs: string
  changes: string
  /** What commands have written. */
  output: string
  run: string
}

/** The home that is used without `--home`: `$KIKI_HOME`, else `~/.kiki`. */
export function defaultHome(): string {
  return resolve(process.env.KIKI_HOME || join(homedir(), '.kiki'))
}

/** A command for a person to run on this home, in backticks: with `--home` unless it is the one that is used without. */
export function homeCommand(dir: string, words: string): string {
  const option = dir === defaultHome() ? '' : ` --home ${shellWord(dir, process.platform)}`
  return `\`kiki ${words}${option}\``
}

/**
 * The paths of the home at `dir` (made absolute). Nothing is created there.
 * @throws KikiError as {@link socketPath} does.
 */
export function homePaths(dir: string): HomePaths {
  const home = resolve(dir)
  return {
    dir: home,
    config: join(home, 'config.toml'),
    mcp: join(home, 'mcp.json'),
    database: join(home, 'kiki.db'),
    ballast: join(home, 'ballast'),
    lock: join(home, 'host.lock'),
    hostFile: join(home, 'host.json'),
    stopped: join(home, 'stopped'),
    socket: socketPath(home),
    ownerToken: join(home, 'owner.token'),
    keys: join(home, 'keys'),
    media: join(home, 'media'),
    logs: join(home, 'logs'),
    changes: join(home, 'changes'),
    output: join(home, 'output'),
    run: join(home, 'run'),
  }
}

/**
 * `<home>/kiki.sock`, or, where that passes 100 bytes, a name made from the home's real path in {@link runtimeDir}.
 * On Windows a named pipe with such a name.
 * @throws KikiError `permission_denied` when the runtime folder is not ours alone, `invalid_arguments` when even that path is too long.
 */
export function socketPath(dir: string): string {
  const home = resolve(dir)
  if (process.platform === 'win32') return `\\\\.\\pipe\\kiki-${homeHash(home)}`
  const inHome = join(home, 'kiki.sock')
  if (Buffer.byteLength(inHome) <= MAX_SOCKET_PATH_BYTES) return inHome
  const elsewhere = join(runtimeDir(), `kiki-${homeHash(home)}.sock`)
  if (Buffer.byteLength(elsewhere) <= MAX_SOCKET_PATH_BYTES) return elsewhere
  throw new KikiError(
    'invalid_arguments',
    `No socket path of at most ${MAX_SOCKET_PATH_BYTES} bytes fits for ${home}.`,
    {
      hint: 'Choose a shorter --home, or set TMPDIR to a short folder.',
    },
  )
}

/**
 * A folder for sockets that only this user can write to: `$XDG_RUNTIME_DIR` where it is sound, else `kiki-<uid>` (made 0700) in the
 * temporary folder. A folder that someone else made or opened to others is refused: a socket there could be theirs (GU-60).
 * @throws KikiError `permission_denied`.
 */
export function runtimeDir(): string {
  const uid = userId()
  const xdg = process.env.XDG_RUNTIME_DIR
  if (xdg && isAbsolute(xdg) && existsSync(xdg) && problemOf(xdg, uid) === undefined) return xdg
  const own = join(tmpdir(), `kiki-${uid}`)
  try {
    mkdirSync(own, { mode: 0o700 })
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
  const problem = problemOf(own, uid)
  if (problem === undefined) return own
  throw new KikiError('permission_denied', `${own} ${problem}, so no socket can safely stand there.`, {
    hint: 'Remove it, or choose a shorter --home so that the socket fits into the home itself.',
  })
}

/**
 * Names that a host started by a bridge inherits; everything else of the client's environment stays behind (GU-09). Of
 * Kiki's own variables only the one that can do nothing but narrow: a client must not loosen what its owner set.
 */
const HOST_ENVIRONMENT =
  /^(PATH|HOME|LANG|LC_.*|TZ|USER|LOGNAME|SHELL|TMPDIR|XDG_.*|KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS)$/
const HOST_ENVIRONMENT_WINDOWS =
  /^(PATHEXT|SYSTEMROOT|SYSTEMDRIVE|COMSPEC|USERPROFILE|USERNAME|APPDATA|LOCALAPPDATA|TEMP|TMP)$/i

/** The clean environment for a host that the bridge starts (GU-09): no secrets, `NODE_OPTIONS` or debug switches of the client. */
export function hostEnvironment(): Record<string, string> {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined) continue
    const wanted =
      HOST_ENVIRONMENT.test(name) ||
      (process.platform === 'win32' && (/^path$/i.test(name) || HOST_ENVIRONMENT_WINDOWS.test(name)))
    if (wanted) clean[name] = value
  }
  return clean
}

/** Where programs keep a user's data that is theirs alone: `$XDG_DATA_HOME/kiki`, else what the platform has for it. */
export function dataFolder(): string {
  const { XDG_DATA_HOME: xdg, LOCALAPPDATA: local } = process.env
  if (process.platform === 'win32') return join(local || join(homedir(), 'AppData', 'Local'), 'kiki')
  if (xdg && isAbsolute(xdg)) return join(xdg, 'kiki')
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'kiki')
  return join(homedir(), '.local', 'share', 'kiki')
}

/** Folders in which other programs keep their settings. */
export interface UserFolders {
  home: string
  /** `$XDG_CONFIG_HOME`, else `~/.config`. */
  config: string
  /** `%APPDATA%` (Windows). */
  appData: string
  /** `$CODEX_HOME`, else `~/.codex`. */
  codex: string
}

export function userFolders(): UserFolders {
  const home = homedir()
  return {
    home,
    config: process.env.XDG_CONFIG_HOME || join(home, '.config'),
    appData: process.env.APPDATA || join(home, 'AppData', 'Roaming'),
    codex: process.env.CODEX_HOME || join(home, '.codex'),
  }
}

function problemOf(dir: string, uid: number): string | undefined {
  const stat = lstatSync(dir)
  if (stat.isSymbolicLink()) return 'is a link'
  if (!stat.isDirectory()) return 'is not a folder'
  if (stat.uid !== uid) return 'belongs to another user'
  if ((stat.mode & 0o077) !== 0) return 'is open to other users'
  return undefined
}

function userId(): number {
  return process.getuid?.() ?? 0
}

function homeHash(home: string): string {
  return createHash('sha256').update(realPath(home)).digest('hex').slice(0, 16)
}

/** The real path, also of a folder that does not exist yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    const parent = dirname(path)
    if (systemCode(error) !== 'ENOENT' || parent === path) throw error
    return join(realPath(parent), basename(path))
  }
}

import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { KikiError, systemCode } from '../lib/errors.js'
import { fileError } from './errors.js'
import type { HomeFence } from './fence.js'

/** What file tools may touch: the session's workspace and the extra directories that the owner granted (PA-01). */
export interface Workspace {
  /** The workspace's real path, made canonical once when the session was bound (GU-52). Relative paths start here. */
  root: string
  /** Every root, `root` first; real paths. */
  roots: readonly string[]
  /** Kiki's home, refused to every tool (PA-03); a real path. */
  home: string
  /** What belongs to the home. One for the host's life, so that it can remember what it saw. */
  fence: HomeFence
  /** Why a real path may not be used in this call, by a rule of the owner; asked at each use. */
  refuses?: (path: string) => KikiError | undefined
}

/** @throws what `refuses` says of a path. */
export function mustNotBeRefused(workspace: Workspace, path: string): void {
  const refusal = workspace.refuses?.(path)
  if (refusal !== undefined) throw refusal
}

/**
 * Makes a folder canonical once, when a session is created (GU-52, SE-09); a root that is itself a link works.
 * @returns its real path, to be stored with the session.
 * @throws KikiError `not_found` where nothing is there, `invalid_arguments` where it is no folder, `path_denied` for
 * Kiki's home and anything inside it.
 */
export function bindWorkspace(path: string, home: HomeFence): string {
  if (path === '' || path.includes('\0')) {
    throw new KikiError('invalid_arguments', 'The workspace path is empty or holds a NUL byte.', {
      hint: 'Give the absolute path of a folder.',
    })
  }
  const real = realFolder(path)
  if (real === undefined) {
    throw new KikiError('not_found', `There is no folder "${path}".`, {
      hint: 'Make the folder first, or choose another.',
    })
  }
  if (!statSync(real).isDirectory()) {
    throw new KikiError('invalid_arguments', `"${path}" is not a folder.`, {
      hint: 'Choose a folder as the workspace.',
    })
  }
  refuseInsideHome(real, home)
  return real
}

/**
 * The workspace of a session for one call.
 * @param root as `bindWorkspace` returned it.
 * @param dirs directories that the owner granted, each as `bindWorkspace` returned it; one that is gone or was replaced
 * by a link is left out of this call.
 * @throws KikiError `session_unavailable` where the folder is gone or replaced by a link: another folder is never used
 * in its place (SE-09).
 */
export function openWorkspace(options: {
  root: string
  /** True where a disk was mounted there when the session was bound: without it, it is another folder. */
  mounted?: boolean
  dirs: readonly string[]
  home: HomeFence
}): Workspace {
  const { root, mounted = false, dirs, home } = options
  if (!isStillFolder(root)) throw unavailable(root)
  if (mounted && !isMountPoint(root)) throw notMounted(root)
  refuseInsideHome(root, home)
  const roots = [root]
  for (const dir of dirs) {
    if (roots.includes(dir) || !isStillFolder(dir)) continue
    refuseInsideHome(dir, home)
    roots.push(dir)
  }
  return { root, roots, home: home.home, fence: home }
}

/** Whether a folder stands at a session's root: for lists, without following its path. Only a call looks closer (SE-09). */
export function folderStands(root: string, mounted = false): boolean {
  try {
    return lstatSync(root, { throwIfNoEntry: false })?.isDirectory() === true && (!mounted || isMountPoint(root))
  } catch (error) {
    // Out of reach (EACCES, ELOOP, …) is as good as gone.
    if (systemCode(error) !== undefined) return false
    throw error
  }
}

/** The refusal for a session whose folder is not there any more (SE-09). */
export function unavailable(root: string): KikiError {
  return new KikiError('session_unavailable', `The session's folder "${root}" is gone or was replaced.`, {
    hint: 'Ask the owner to put the folder back, or start a session in another workspace.',
    data: { workspace: root },
  })
}

/** A disk that was taken away leaves an empty folder in its place, which is not the session's (SE-09). */
function notMounted(root: string): KikiError {
  return new KikiError('session_unavailable', `The disk or share of the session's folder "${root}" is not mounted.`, {
    hint: 'Ask the owner to mount it again, or start a session in another workspace.',
    data: { workspace: root },
  })
}

/** @param real real path of a folder. */
export function isMountPoint(real: string): boolean {
  if (statSync(real).dev !== statSync(dirname(real)).dev) return true
  if (process.platform !== 'linux') return real === dirname(real)
  // A bind mount is on the same device: the kernel's list tells. Its fifth field is the place (proc(5)).
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => unescaped(line.split(' ')[4] ?? '') === real)
}

/** Space, tab, line feed and backslash stand in the list as `\\` and three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function isStillFolder(path: string): boolean {
  return realFolder(path) === path && lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Not there, or on a disk or server that does not answer any more. */
const GONE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENOTCONN', 'ESTALE', 'ENODEV', 'ENXIO', 'EHOSTDOWN']

function realFolder(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch (error) {
    const code = systemCode(error)
    if (code !== undefined && GONE.includes(code)) return undefined
    throw fileError(error, path)
  }
}

function refuseInsideHome(real: string, home: HomeFence): void {
  for (let path = real; ; path = dirname(path)) {
    if (home.isHome(statSync(path, { bigint: true }))) {
      throw new KikiError('path_denied', `"${real}" lies in Kiki's own home, which no session may use.`, {
        hint: "Choose a folder outside Kiki's home.",
      })
    }
    if (path === dirname(path)) return
  }
}

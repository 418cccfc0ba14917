import { lstatSync, realpathSync, statSync } from 'node:fs'
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
export function openWorkspace(options: { root: string; dirs: readonly string[]; home: HomeFence }): Workspace {
  const { root, dirs, home } = options
  if (!isStillFolder(root)) throw unavailable(root)
  refuseInsideHome(root, home)
  const roots = [root]
  for (const dir of dirs) {
    if (roots.includes(dir) || !isStillFolder(dir)) continue
    refuseInsideHome(dir, home)
    roots.push(dir)
  }
  return { root, roots, home: home.home, fence: home }
}

/** Whether a folder stands at a session's root, by one lstat: for lists. Only a call looks closer (SE-09). */
export function folderStands(root: string): boolean {
  try {
    return lstatSync(root, { throwIfNoEntry: false })?.isDirectory() === true
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

function isStillFolder(path: string): boolean {
  return realFolder(path) === path && lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function realFolder(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return undefined
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

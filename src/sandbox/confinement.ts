import type { LauncherStart } from '../processes/link.js'

/** What one session's commands may see and change. All paths are absolute and real. */
export interface Confinement {
  /** Where commands start; one of `writable`. */
  workspace: string
  /** The workspace, the granted folders and the configured caches. */
  writable: readonly string[]
  /** The session's own temporary folder: its `/tmp`. */
  temporary: string
  /** Read-only although they lie in something writable, and not to be moved away: git hooks, Kiki's project files, … (SB-01). */
  frozen: readonly string[]
  /** Writable, but not to be moved away, because something frozen lies in them. */
  fixed: readonly string[]
  /** Folders and files that nobody sees: Kiki's home, the owner's secrets (PA-06). */
  hidden: readonly HiddenPlace[]
  /** Needed to run at all, wherever it is: Kiki's own program, Node.js. */
  programs: readonly string[]
  /** Whether commands use the machine's own network; otherwise one of their own, in which nothing else is. */
  network: boolean
}

export interface HiddenPlace {
  path: string
  kind: 'folder' | 'file'
}

/** What a sandbox's launcher is started with. */
export interface LauncherFacts {
  argv: readonly [string, ...string[]]
  env: Record<string, string>
  /** The folder of the host's door. */
  door: string
}

export type ConfinedStart = (confinement: Confinement, launcher: LauncherFacts) => LauncherStart

/** Where the door's folder is seen within a sandbox that has a file system of its own. */
export const DOOR_INSIDE = '/run/kiki'

/** Folders from the root down to a path: what lies deeper lies over what is around it. */
export function depthOf(path: string): number {
  return path === '/' ? 0 : path.split('/').length - 1
}

/** Whether nobody sees a path: of what covers it, the deepest counts, and what was granted by its own name is seen. */
export function isHidden(path: string, { hidden, writable }: Pick<Confinement, 'hidden' | 'writable'>): boolean {
  const deepest = (places: readonly string[]) =>
    places.filter((place) => isWithin(path, place)).reduce((most, { length }) => Math.max(most, length), 0)
  return deepest(hidden.map((place) => place.path)) > deepest(writable)
}

/** Whether a path is the folder itself or within it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`)
}

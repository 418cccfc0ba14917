import { lstatSync } from 'node:fs'
import path from 'node:path'
import { KikiError } from '../../lib/errors.js'
import { type OpenedFile, openFile, resolvePath } from '../../workspace/files.js'
import type { Workspace } from '../../workspace/workspace.js'
import { inScope, type Scope } from './scope.js'

/**
 * Whether a file that ripgrep names may be counted: in scope, not refused by a rule, and no hard link to a file of Kiki's home. Also counts of hits
 * would tell what such a file holds, so this comes before counting.
 */
export function mayCount(workspace: Workspace, scope: Scope, name: string): boolean {
  if (workspace.refuses?.(path.join(scope.folder.path, name)) !== undefined) return false
  return inScope(scope, name) && statCounted(workspace, scope, name) !== undefined
}

/** As {@link mayCount}; the time of the last change in ms, or undefined where the file may not be counted. */
export function statCounted(workspace: Workspace, scope: Scope, name: string): number | undefined {
  const stat = lstatSync(placeOf(scope, name), { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile()) return undefined
  if (stat.nlink > 1) {
    const exact = lstatSync(placeOf(scope, name), { bigint: true, throwIfNoEntry: false })
    if (exact === undefined || workspace.fence.holds(exact)) return undefined
  }
  return stat.mtimeMs
}

/**
 * Opens a file that ripgrep names by the safe walk, because ripgrep itself goes by names, which may have been swapped for
 * links meanwhile. Undefined where it does not lead to a readable regular file of the workspace any more.
 */
export function openCounted(workspace: Workspace, scope: Scope, name: string): OpenedFile | undefined {
  return stillInside(() => openFile(workspace, path.join(scope.folder.path, name)))
}

/** The name to show for a file that ripgrep names; undefined where no regular file of the workspace is there any more. */
export function shownName(workspace: Workspace, scope: Scope, name: string): string | undefined {
  const place = stillInside(() => resolvePath(workspace, path.join(scope.folder.path, name)))
  return place?.type === 'file' ? place.display : undefined
}

function placeOf(scope: Scope, name: string): string {
  return process.platform === 'linux' ? `/proc/self/fd/${scope.folder.fd}/${name}` : path.join(scope.folder.path, name)
}

function stillInside<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    // Gone, swapped, closed to us or fenced off: left out of the answer. A lost workspace or a bug is not.
    const left = ['not_found', 'path_denied', 'invalid_arguments', 'permission_denied', 'conflict']
    if (error instanceof KikiError && left.includes(error.code)) return undefined
    throw error
  }
}

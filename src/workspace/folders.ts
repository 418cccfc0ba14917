import { closeSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../lib/errors.js'
import { descend, type Held } from './descend.js'
import { cancelled, changedMeanwhile, fileError, notFolder } from './errors.js'
import type { ChangeContext } from './files.js'
import { type Journal, syncFolder } from './journal.js'
import { displayOf } from './paths.js'
import { walk } from './walk.js'
import type { Workspace } from './workspace.js'

/**
 * Makes a folder and those above it that are missing; each is recorded, so that undo can remove it (FI-12).
 * @returns the folders that were made, outermost first; none where it was there already.
 * @throws KikiError as the walk, and `invalid_arguments` where something else has that name.
 */
export async function makeFolders(
  context: ChangeContext,
  path: string,
): Promise<{ path: string; display: string; made: string[] }> {
  if (context.signal.aborted) throw cancelled()
  const place = walk(context.workspace, path)
  try {
    if (place.node !== undefined && !place.node.stat.isDirectory()) throw notFolder(place.display)
    const folders = holdMissing(context, place.folder, place.missing)
    folders.close()
    return { path: place.path, display: place.display, made: folders.made }
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/** Folders that were missing: made, each recorded before, and held. */
export interface MadeFolders {
  /** The innermost one; the folder to start from where none was missing. */
  last: Held
  /** As shown to the client, outermost first. */
  made: string[]
  /** Takes them away again after a failure; one that somebody else has put something in stays. */
  remove(): void
  close(): void
}

/** Makes `names` below a held folder, one in the other. */
export function holdMissing(
  { workspace, journal }: { workspace: Workspace; journal: Journal },
  start: Held,
  names: readonly string[],
): MadeFolders {
  const held: Held[] = []
  const made: MadeFolders = {
    last: start,
    made: [],
    remove: () => removeMade(start, held),
    close: () => {
      for (const folder of held) closeSync(folder.fd)
    },
  }
  try {
    for (const name of names) {
      made.last = makeOne(journal, made.last, name)
      held.push(made.last)
      made.made.push(displayOf(workspace, made.last.path))
    }
    return made
  } catch (error) {
    made.remove()
    made.close()
    throw error
  }
}

function makeOne(journal: Journal, folder: Held, name: string): Held {
  const path = join(folder.path, name)
  if (!descend.stillThere(folder)) throw changedMeanwhile(path)
  journal.record({ kind: 'mkdir', path })
  mkdirSync(descend.at(folder, name))
  syncFolder(descend.at(folder, '.'))
  const node = descend.openNode(folder, name)
  if (node?.fd !== undefined && node.stat.isDirectory()) return { fd: node.fd, path, stat: node.stat }
  if (node?.fd !== undefined) closeSync(node.fd)
  throw changedMeanwhile(path)
}

function removeMade(start: Held, held: readonly Held[]): void {
  for (let index = held.length - 1; index >= 0; index -= 1) {
    const folder = held[index - 1] ?? start
    const name = held[index]?.path.slice(join(folder.path, 'x').length - 1) ?? ''
    try {
      rmdirSync(descend.at(folder, name))
    } catch (error) {
      if (['ENOTEMPTY', 'ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return
      throw error
    }
  }
}

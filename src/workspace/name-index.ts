import { isUtf8 } from 'node:buffer'
import { closeSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { descend, type Held } from './descend.js'
import { identityOf } from './files.js'
import type { Workspace } from './workspace.js'

/** Entries that are looked through for another name of a file. */
const MAX_SEEN = 20_000
const BATCH = 256

/**
 * Paths of files by {@link nameKey}, within the session's folders: where a deleted hard link is brought back, it becomes a
 * name of its file again. At most 20,000 entries are looked through; no link is followed.
 */
export async function indexNames(workspace: Workspace, signal: AbortSignal): Promise<Map<string, string[]>> {
  const names = new Map<string, string[]>()
  const pending = [...workspace.roots]
  let seen = 0
  for (let path = pending.pop(); path !== undefined && seen < MAX_SEEN; path = pending.pop()) {
    const folder = descend.openRoot(path)
    if (folder === undefined) continue
    try {
      if (workspace.fence.isHome(folder.stat)) continue
      for (const raw of readdirSync(descend.at(folder, '.'), { encoding: 'buffer' })) {
        seen += 1
        if (seen % BATCH === 0) await setImmediate()
        if (signal.aborted || seen >= MAX_SEEN) return names
        if (isUtf8(raw)) take(names, pending, folder, raw.toString())
      }
    } finally {
      closeSync(folder.fd)
    }
  }
  return names
}

/** Inodes are used again: only with its time of birth is a file known for certain. */
export function nameKey(identity: string, born: string): string {
  return `${identity} ${born}`
}

function take(names: Map<string, string[]>, pending: string[], folder: Held, name: string): void {
  const node = descend.openNode(folder, name)
  if (node === undefined) return
  const path = join(folder.path, name)
  if (node.stat.isDirectory()) pending.push(path)
  else if (node.stat.isFile()) {
    const key = nameKey(identityOf(node.stat), `${node.stat.birthtimeNs}`)
    names.set(key, [...(names.get(key) ?? []), path])
  }
  if (node.fd !== undefined) closeSync(node.fd)
}

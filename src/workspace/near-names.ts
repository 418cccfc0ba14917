import { readdirSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { descend, type Held } from './descend.js'
import { displayOf } from './paths.js'
import type { Workspace } from './workspace.js'

/** Names of one folder that are compared; more would cost more than the hint is worth. */
const MAX_NAMES = 5_000
const MAX_HINTS = 3

/** The `not_found` for a name that is not in a held folder, with the names there that it may have meant. */
export function missing(workspace: Workspace, path: string, folder: Held, name: string): KikiError {
  const near = nearNames(name, namesIn(folder))
    .map((candidate) => join(folder.path, candidate))
    .filter((candidate) => candidate !== workspace.home)
    .map((candidate) => displayOf(workspace, candidate))
  const where = displayOf(workspace, folder.path)
  const full = join(folder.path, name)
  const said = [full, displayOf(workspace, full)].includes(normalize(path))
  const which = said ? '' : `: "${where}" has no entry "${name}"`
  return new KikiError('not_found', `There is no "${path}"${which}.`, {
    hint:
      near.length > 0
        ? `Near names: ${near.map((candidate) => JSON.stringify(candidate)).join(', ')}. Use one of these or List "${where}".`
        : `Use List on "${where}" to see what is there.`,
    data: { path, near },
  })
}

/**
 * The names most like `wanted`, best first: another Unicode form, another letter case, then few edits.
 * At most 3; empty where nothing is near.
 */
export function nearNames(wanted: string, names: readonly string[]): string[] {
  const form = wanted.normalize('NFC')
  const fold = form.toLowerCase()
  const limit = Math.max(1, Math.min(3, Math.ceil(fold.length / 2)))
  const ranked: { name: string; distance: number }[] = []
  for (const name of names) {
    const other = name.normalize('NFC')
    if (other === form) ranked.push({ name, distance: -2 })
    else if (other.toLowerCase() === fold) ranked.push({ name, distance: -1 })
    else if (Math.abs(other.length - fold.length) <= limit) {
      const distance = editDistance(fold, other.toLowerCase())
      if (distance <= limit) ranked.push({ name, distance })
    }
  }
  return ranked
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_HINTS)
    .map((entry) => entry.name)
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

function namesIn(folder: Held): string[] {
  try {
    return readdirSync(descend.at(folder, '.')).slice(0, MAX_NAMES)
  } catch {
    // An unreadable folder has no hints; the answer is "not found" all the same.
    return []
  }
}

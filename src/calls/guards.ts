import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/schema.js'
import type { Connection } from '../grants/connections.js'
import { KikiError } from '../lib/errors.js'
import type { ParsedScript } from '../policy/commands/types.js'
import { isGuarded, type SecretNames, secretNames } from '../policy/guards.js'
import type { Target } from '../policy/rules.js'
import type { Tool } from '../tools/tool.js'
import { gitFoldersOf } from '../workspace/git.js'
import type { Workspace } from '../workspace/workspace.js'
import { networkGuard } from './command.js'

/** Why the owner is asked about a call whatever its mode (PO-03), and what its files are kept from. */
export interface Guards {
  /** The reason to ask. */
  guard?: string
  /** A secret that it names: refused where the mode is read-only (PA-06). */
  secret?: string
}

export interface GuardInput {
  tool: Omit<Tool, 'run'>
  script: ParsedScript | undefined
  connection: Connection
  config: Config
  workspace: Workspace
}

/** Entries of a folder that are looked at for something guarded in it; a larger one is asked about for its size. */
const MAX_ENTRIES = 20_000

/** Whether a tool shows or carries the content of the files that it names or finds. */
export function showsContent({ name, countsAs = [] }: Pick<Tool, 'name' | 'countsAs'>): boolean {
  // Names of files are no secret.
  return name !== 'Glob' && (name === 'Read' || countsAs.includes('Read'))
}

export function secretsOf({ permission }: Config): SecretNames {
  return secretNames({ more: permission.secret_files, less: permission.not_secret_files })
}

/**
 * @param targets what the arguments name.
 * @param recorded what only the session's record names.
 */
export function guardsOf(
  { tool, script, connection, config, workspace }: GuardInput,
  targets: readonly Target[],
  recorded: readonly Target[] = [],
): Guards {
  const network = networkGuard(tool, script, connection.grant)
  if (network !== undefined) return { guard: network }
  const all = [...targets, ...recorded]
  if (tool.effect === 'write') {
    const guarded = guardedIn(workspace)
    const found = all.find((target) => guarded(target.given) || guarded(target.real))
    const guard = found === undefined ? guardWithin(guarded, targets) : changesGuarded(found.given)
    if (guard !== undefined) return { guard }
  }
  if (!showsContent(tool)) return {}
  const secrets = secretsOf(config)
  const secret = all.find(({ given, real }) => secrets.has(given) || secrets.has(real))?.given
  if (secret === undefined) return {}
  return {
    secret,
    guard: `"${secret}" looks like a secret: what it holds is shown only if the owner agrees (permission.secret_files).`,
  }
}

type IsGuarded = (path: string) => boolean

/** By names, and for git's folders that are not called `.git` (a separate one, a linked worktree's) by where they are. */
function guardedIn({ roots }: Pick<Workspace, 'roots'>): IsGuarded {
  const folders = roots.flatMap(gitFoldersOf)
  return (path) => {
    const root = roots.find((one) => isIn(path, one))
    return isGuarded(path, root) || folders.some((folder) => isIn(path, folder))
  }
}

function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

function changesGuarded(path: string): string {
  return `"${path}" can make git, a shell, an editor or Kiki run something: changing it is always asked about.`
}

/** About something guarded in a folder that is deleted or moved as a whole, at any depth. */
function guardWithin(guarded: IsGuarded, targets: readonly Target[]): string | undefined {
  const folders = targets.filter(({ tree }) => tree === true).map(({ real }) => real)
  let seen = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name)
      if (guarded(path)) return changesGuarded(path)
      if (++seen > MAX_ENTRIES) {
        return `More than ${MAX_ENTRIES} entries are in it, too many to look for what git, a shell, an editor or Kiki runs.`
      }
      if (entry.isDirectory()) folders.push(path)
    }
  }
  return undefined
}

function entriesOf(folder: string): Dirent[] {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    // The tool itself refuses what it cannot read, and says why.
    return []
  }
}

/**
 * Guarded places are kept from a tool that writes, but for those that the owner was asked about: where a path is used too, so
 * that a name swapped after the decision leads to none (PA-05).
 * @param asked none where the call did not have to be asked about.
 */
export function keepGuarded(workspace: Workspace, asked: readonly Target[]): void {
  const guarded = guardedIn(workspace)
  refuseAlso(workspace, (path) => {
    if (!guarded(path) || asked.some((target) => covers(target, path))) return undefined
    return new KikiError('permission_denied', `${changesGuarded(path)} This call was not asked about for it.`, {
      hint: 'Name this very path, or for an undo the operation: then the owner is asked.',
      data: { setting: 'guard' },
    })
  })
}

function covers({ real, tree }: Target, path: string): boolean {
  return path === real || (tree === true && isIn(path, real))
}

/**
 * Files that look like secrets are kept from a tool that shows content, but for those that its arguments name: about these the
 * owner was asked. It holds where a path is used too: in searches, through links, after a swap (PA-06).
 */
export function keepSecrets(workspace: Workspace, config: Config, named: readonly Target[]): void {
  const secrets = secretsOf(config)
  const allowed = new Set(named.map(({ real }) => real))
  refuseAlso(workspace, (path) => {
    if (allowed.has(path) || !secrets.has(path)) return undefined
    return new KikiError('permission_denied', `"${path}" looks like a secret, and is not shown unasked.`, {
      hint: 'Read it by this very path: then the owner is asked.',
      data: { setting: 'permission.secret_files' },
    })
  })
}

function refuseAlso(workspace: Workspace, refuses: NonNullable<Workspace['refuses']>): void {
  const before = workspace.refuses
  workspace.refuses = (path) => before?.(path) ?? refuses(path)
}

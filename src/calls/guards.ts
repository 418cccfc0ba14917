import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/schema.js'
import type { Connection } from '../grants/connections.js'
import { KikiError } from '../lib/errors.js'
import type { ParsedScript } from '../policy/commands/types.js'
import { isGuarded, isGuardedName, type SecretNames, secretNames } from '../policy/guards.js'
import type { Target } from '../policy/rules.js'
import type { Tool } from '../tools/tool.js'
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
}

/** Entries of a folder that are looked at, and how deep, for something guarded in it. */
const MAX_ENTRIES = 5000
const MAX_DEPTH = 6

/** Whether a tool shows or carries the content of the files that it names or finds. */
export function showsContent({ name, countsAs = [] }: Pick<Tool, 'name' | 'countsAs'>): boolean {
  // Names of files are no secret.
  return name !== 'Glob' && (name === 'Read' || countsAs.includes('Read'))
}

export function secretsOf({ permission }: Config): SecretNames {
  return secretNames({ more: permission.secret_files, less: permission.not_secret_files })
}

export function guardsOf({ tool, script, connection, config }: GuardInput, targets: readonly Target[]): Guards {
  const network = networkGuard(tool, script, connection.grant)
  if (network !== undefined) return { guard: network }
  if (tool.effect === 'write') {
    const found = targets.find((target) => isGuarded(target.given) || isGuarded(target.real))
    const inside = found === undefined ? targets.map(guardedWithin).find((path) => path !== undefined) : undefined
    const place = found?.given ?? inside
    if (place !== undefined) {
      return {
        guard: `"${place}" can make git, a shell, an editor or Kiki run something: changing it is always asked about.`,
      }
    }
  }
  if (!showsContent(tool)) return {}
  const secrets = secretsOf(config)
  const secret = targets.find(({ given, real }) => secrets.has(given) || secrets.has(real))?.given
  if (secret === undefined) return {}
  return {
    secret,
    guard: `"${secret}" looks like a secret: what it holds is shown only if the owner agrees (permission.secret_files).`,
  }
}

/** Something guarded in a folder that is deleted or moved as a whole. */
function guardedWithin({ real, tree }: Target): string | undefined {
  if (tree !== true || lstatSync(real, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined
  let folders = [real]
  let seen = 0
  for (let depth = 0; depth < MAX_DEPTH && folders.length > 0; depth++) {
    const next: string[] = []
    for (const folder of folders) {
      for (const entry of entriesOf(folder)) {
        if (isGuardedName(entry.name)) return join(folder, entry.name)
        if (++seen > MAX_ENTRIES) return undefined
        if (entry.isDirectory()) next.push(join(folder, entry.name))
      }
    }
    folders = next
  }
  return undefined
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    // The tool itself refuses what it cannot read, and says why.
    return []
  }
}

/**
 * Files that look like secrets are kept from a tool that shows content, but for those that its arguments name: about these the
 * owner was asked. It holds where a path is used too: in searches, through links, after a swap (PA-06).
 */
export function keepSecrets(workspace: Workspace, config: Config, named: readonly Target[]): void {
  const secrets = secretsOf(config)
  const allowed = new Set(named.map(({ real }) => real))
  const before = workspace.refuses
  workspace.refuses = (path) => {
    const refused = before?.(path)
    if (refused !== undefined || allowed.has(path) || !secrets.has(path)) return refused
    return new KikiError('permission_denied', `"${path}" looks like a secret, and is not shown unasked.`, {
      hint: 'Read it by this very path: then the owner is asked.',
      data: { setting: 'permission.secret_files' },
    })
  }
}

import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { KikiError, systemCode } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { type HomePaths, homePaths } from './home.js'
import { makeHomeFolder, unusableHome } from './home-folder.js'

/** Secrets of the home, each in a 0600 file of its own. */
export interface HomeSecrets {
  /** Names this home in local credentials; not secret. */
  homeId: string
  /** Signs the bridge's credentials. */
  credentialKey: Uint8Array
  /** The owner's bearer token for the owner listener. */
  ownerToken: string
}

/**
 * Makes the home where it is missing and its modes right: folders 0700, files 0600 (GU-60).
 * @returns its paths with the folder's real path.
 * @throws KikiError `permission_denied` when the folder belongs to someone else or cannot be written, `conflict` when it is no
 * folder or something else stands where Kiki keeps a file or a folder.
 */
export function prepareHome(dir: string): HomePaths {
  makeHomeFolder(dir)
  const paths = homePaths(realpathSync(dir))
  if (process.getuid !== undefined && statSync(paths.dir).uid !== process.getuid()) {
    throw new KikiError('permission_denied', `The home ${paths.dir} belongs to another user.`, {
      hint: 'Choose another --home.',
    })
  }
  try {
    chmodSync(paths.dir, 0o700)
  } catch (error) {
    throw unusableHome(paths.dir, error)
  }
  for (const folder of [paths.keys, paths.media, paths.logs, paths.changes, paths.output, paths.run])
    makeHomeFolder(folder)
  const { config, mcp, database, lock, hostFile, stopped, ownerToken } = paths
  for (const file of [config, mcp, database, lock, hostFile, stopped, ownerToken]) requireFile(file)
  tighten(paths.dir, 2)
  return paths
}

/**
 * Reads the home's secrets, making those that are missing. The home's lock must be held.
 * @throws KikiError `internal_error` where one is empty.
 */
export function readSecrets(paths: HomePaths): HomeSecrets {
  return {
    homeId: textFile(join(paths.keys, 'home-id'), () => newId('home')),
    credentialKey: Buffer.from(secretFile(join(paths.keys, 'credential.key')), 'base64url'),
    ownerToken: textFile(paths.ownerToken, () => `kiki_owner_${randomBytes(32).toString('base64url')}`),
  }
}

/**
 * A secret of 32 random bytes in base 64 (URL), made where it is missing (0600). The home's lock must be held.
 * @throws KikiError `internal_error` where it is empty, `conflict` where something else stands there.
 */
export function secretFile(path: string): string {
  return textFile(path, () => randomBytes(32).toString('base64url'))
}

function textFile(path: string, make: () => string): string {
  // Synced and renamed into place: a crash in between must not leave an empty secret, which nobody could start with (GU-43).
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined)
    writeFileAtomic.sync(path, `${make()}\n`, { mode: 0o600 })
  requireFile(path)
  const value = readFileSync(path, 'utf8').trim()
  if (value === '')
    throw new KikiError('internal_error', `${path} is empty.`, {
      hint: 'Remove it; a new one is made at the next start.',
    })
  return value
}

/** A folder or a pipe under a file's name would fail later, and not say why. */
function requireFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined || stat.isFile()) return
  throw new KikiError('conflict', `${path} is not a file, and Kiki keeps one under that name.`, {
    hint: 'Move it out of the home, then start again.',
  })
}

/** Takes everyone else's rights away from what stands in the home, down to `depth` folders. Never opens a file (GU-40). */
function tighten(folder: string, depth: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isFile()) closeToOthers(path, 0o600)
    if (!entry.isDirectory()) continue
    closeToOthers(path, 0o700)
    if (depth > 1) tighten(path, depth - 1)
  }
}

function closeToOthers(path: string, mode: number): void {
  try {
    const stat = lstatSync(path)
    if (!stat.isSymbolicLink() && (stat.mode & 0o077) !== 0) chmodSync(path, mode)
  } catch (error) {
    // A host that starts at the same time makes and removes temporary files here.
    if (systemCode(error) !== 'ENOENT') throw unusableHome(path, error)
  }
}

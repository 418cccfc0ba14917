import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { type HomePaths, homePaths } from './home.js'

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
 * @throws KikiError `permission_denied` when the folder belongs to someone else, `invalid_arguments` when it is no folder.
 */
export function prepareHome(dir: string): HomePaths {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const paths = homePaths(realpathSync(dir))
  const stat = lstatSync(paths.dir)
  if (!stat.isDirectory())
    throw new KikiError('invalid_arguments', `${paths.dir} is not a folder.`, { hint: 'Choose another --home.' })
  if (process.getuid !== undefined && stat.uid !== process.getuid()) {
    throw new KikiError('permission_denied', `The home ${paths.dir} belongs to another user.`, {
      hint: 'Choose another --home.',
    })
  }
  chmodSync(paths.dir, 0o700)
  for (const folder of [paths.keys, paths.media, paths.logs, paths.changes, paths.run])
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  tighten(paths.dir, 2)
  return paths
}

/** Reads the home's secrets, making those that are missing. */
export function readSecrets(paths: HomePaths): HomeSecrets {
  return {
    homeId: textFile(join(paths.keys, 'home-id'), () => newId('home')),
    credentialKey: Buffer.from(
      textFile(join(paths.keys, 'credential.key'), () => randomBytes(32).toString('base64url')),
      'base64url',
    ),
    ownerToken: textFile(paths.ownerToken, () => `kiki_owner_${randomBytes(32).toString('base64url')}`),
  }
}

function textFile(path: string, make: () => string): string {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined)
    writeFileSync(path, `${make()}\n`, { mode: 0o600, flag: 'wx' })
  const value = readFileSync(path, 'utf8').trim()
  if (value === '')
    throw new KikiError('internal_error', `${path} is empty.`, {
      hint: 'Remove it; a new one is made at the next start.',
    })
  return value
}

/** Takes everyone else's rights away from what stands in the home, down to `depth` folders. Never opens a file (GU-40). */
function tighten(folder: string, depth: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isFile() && (lstatSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
    if (!entry.isDirectory()) continue
    if ((lstatSync(path).mode & 0o077) !== 0) chmodSync(path, 0o700)
    if (depth > 1) tighten(path, depth - 1)
  }
}

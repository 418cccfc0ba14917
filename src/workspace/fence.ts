import { type BigIntStats, lstatSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemCode } from '../lib/errors.js'

/** Tells what belongs to Kiki's home, by identity: no spelling of a path gets round it (PA-03, GU-40). */
export interface HomeFence {
  /** The home's real path. */
  home: string
  /** Whether this folder is the home. */
  isHome(stat: BigIntStats): boolean
  /** Whether this folder is the home or one above it, so that moving or removing it would take the home along. */
  isAbove(stat: BigIntStats): boolean
  /** Whether this file is also a file of the home, through a hard link. Never opens a file of the home. */
  holds(stat: BigIntStats): boolean
  /** A folder that all hosts of this user share, for locks between them; undefined where there is none. */
  locks: string | undefined
}

interface Scanned {
  mtimeNs: bigint
  /** Wall clock, ns, before the folder was read. */
  at: bigint
  files: Set<string>
  folders: string[]
}

/** Two changes within one tick of the file system's clock look like one; a younger scan than this is not trusted. */
const CLOCK_TICK_NS = 50_000_000n

/**
 * @param home real path of Kiki's home, which exists.
 * @param locks see {@link HomeFence}.
 */
export function createHomeFence(home: string, locks?: string): HomeFence {
  const own = identity(statSync(home, { bigint: true }))
  const scans = new Map<string, Scanned>()
  return {
    home,
    locks,
    isHome: (stat) => identity(stat) === own,
    isAbove: (stat) => {
      const wanted = identity(stat)
      for (let path = home; ; path = dirname(path)) {
        if (identity(statSync(path, { bigint: true })) === wanted) return true
        if (path === dirname(path)) return false
      }
    },
    holds: (stat) => stat.nlink > 1n && stat.isFile() && holdsFile(scans, home, identity(stat)),
  }
}

function holdsFile(scans: Map<string, Scanned>, home: string, wanted: string): boolean {
  const pending = [home]
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const scan = scanFolder(scans, folder)
    if (scan?.files.has(wanted)) return true
    if (scan !== undefined) for (const name of scan.folders) pending.push(join(folder, name))
  }
  return false
}

/** What is in one folder of the home, read again only where the folder changed. Undefined where it is gone. */
function scanFolder(scans: Map<string, Scanned>, folder: string): Scanned | undefined {
  const stat = lstatSync(folder, { bigint: true, throwIfNoEntry: false })
  if (stat === undefined) {
    scans.delete(folder)
    return undefined
  }
  const known = scans.get(folder)
  if (known !== undefined && known.mtimeNs === stat.mtimeNs && stat.mtimeNs + CLOCK_TICK_NS < known.at) return known
  const at = BigInt(Date.now()) * 1_000_000n
  const scan: Scanned = { mtimeNs: stat.mtimeNs, at, files: new Set(), folders: [] }
  for (const name of namesIn(folder)) {
    const entry = lstatSync(join(folder, name), { bigint: true, throwIfNoEntry: false })
    if (entry?.isDirectory()) scan.folders.push(name)
    else if (entry !== undefined) scan.files.add(identity(entry))
  }
  scans.set(folder, scan)
  return scan
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}

function identity(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`
}

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** NTFS by FUSE is the one file system here that can be told to take `A` and `a` for the same name. */
const PROGRAM = 'lowntfs-3g'

/** Why there can be no such disk on this machine; undefined where there can. */
export function noCaselessDisk(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only the superuser of Linux may mount one'
  if (!existsSync('/dev/fuse')) return 'this kernel has no FUSE'
  return spawnSync(PROGRAM, ['--version']).error === undefined ? undefined : `there is no ${PROGRAM}`
}

export interface CaselessDisk {
  /** Its top folder; a real path. */
  root: string
  remove(): void
}

/** A real disk that takes every letter case of a name for the same file, as Windows and macOS do. */
export function caselessDisk(): CaselessDisk {
  const base = realpathSync.native(mkdtempSync(join(tmpdir(), 'kiki-caseless-')))
  const image = join(base, 'image')
  const root = join(base, 'disk')
  writeFileSync(image, '')
  truncateSync(image, 8 * 1024 * 1024)
  mkdirSync(root)
  execFileSync('mkntfs', ['--force', '--quick', image], { stdio: 'ignore' })
  execFileSync(PROGRAM, ['-o', 'ignore_case', image, root], { stdio: 'ignore' })
  return {
    root,
    remove() {
      execFileSync('umount', [root])
      rmSync(base, { recursive: true })
    },
  }
}

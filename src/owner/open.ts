import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KikiError } from '../lib/errors.js'

const STALE_MS = 2 * 60_000

/** Where the page's link with a login code in its fragment leads; the fragment is never sent to any server. */
export function loginUrl(ownerUrl: string, code: string): string {
  return `${ownerUrl.replace(/\/+$/, '')}/#login=${encodeURIComponent(code)}`
}

/**
 * Hands a login over to the browser by a 0600 file in the home that redirects to `url`: on a command line every user of
 * the machine could read the code (GU-62). Files that an interrupted `kiki open` left behind are deleted first.
 * @returns the file and `remove`, to be called once the browser has read it, at the latest after 2 minutes.
 * @throws KikiError `invalid_arguments` for a URL that is not plain HTTP on loopback.
 */
export function redirectFile({ home, url }: { home: string; url: string }): { file: string; remove(): void } {
  const target = new URL(url)
  if (target.protocol !== 'http:' || !['127.0.0.1', 'localhost', '[::1]'].includes(target.hostname)) {
    throw new KikiError('invalid_arguments', 'The settings page is on loopback only.', {
      hint: 'Take the address from `kiki status`.',
    })
  }
  const folder = join(home, 'run')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeStale(folder)
  const file = join(folder, `open-${randomBytes(12).toString('hex')}.html`)
  writeFileSync(file, page(target.href), { mode: 0o600, flag: 'wx' })
  return { file, remove: () => rmSync(file, { force: true }) }
}

function removeStale(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!/^open-[0-9a-f]{24}\.html$/.test(name)) continue
    const file = join(folder, name)
    const made = statSync(file, { throwIfNoEntry: false })?.mtimeMs
    // One from the future was made before the wall clock was put back.
    if (made !== undefined && Math.abs(Date.now() - made) > STALE_MS) rmSync(file, { force: true })
  }
}

function page(url: string): string {
  const escaped = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=${escaped}">
<title>Opening Kiki</title>
<p><a href="${escaped}">Open Kiki's settings page</a></p>
</html>
`
}

export interface Surroundings {
  platform: NodeJS.Platform
  /** Environment variables of the command. */
  env: Record<string, string | undefined>
}

/** What `kiki open` does here: start a browser, or tell the person what to do. */
export type OpenWay = 'browser' | 'ssh' | 'print'

/** Over SSH a browser would open on the wrong screen; without a display there is none. */
export function wayToOpen({ platform, env }: Surroundings): OpenWay {
  if (env.SSH_CONNECTION || env.SSH_CLIENT || env.SSH_TTY) return 'ssh'
  if (platform === 'darwin' || platform === 'win32') return 'browser'
  return env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME ? 'browser' : 'print'
}

/** The program that opens a file in the owner's default browser. No shell is involved. */
export function openerCommand(platform: NodeJS.Platform, file: string): { command: string; args: string[] } {
  if (platform === 'darwin') return { command: 'open', args: [file] }
  if (platform === 'win32') return { command: 'rundll32.exe', args: ['url.dll,FileProtocolHandler', file] }
  return { command: 'xdg-open', args: [file] }
}

/** What `kiki open` prints over SSH: the line to run on the own machine, and the link that then works there (CL-03). */
export function sshInstructions({ url, user, host }: { url: string; user: string; host: string }): string[] {
  const port = new URL(url).port
  return [
    'On your own machine, forward the port (it must be the same one there):',
    `  ssh -N -L ${port}:127.0.0.1:${port} ${user}@${host}`,
    'Then open this link there within 2 minutes. It works once:',
    `  ${url}`,
  ]
}

import type { Config } from '../../config/schema.js'

/** How the platform's shell runs a script, without the owner's start-up files (SH-07). */
export function shellWords(
  script: string,
  platform: NodeJS.Platform,
  windowsShell: Config['commands']['windows_shell'],
): [string, ...string[]] {
  if (platform !== 'win32' || windowsShell === 'git-bash') return ['bash', '--noprofile', '--norc', '-c', script]
  return [
    'powershell.exe',
    '-NoLogo',
    '-NoProfile',
    '-NonInteractive',
    '-ExecutionPolicy',
    'Bypass',
    '-Command',
    script,
  ]
}

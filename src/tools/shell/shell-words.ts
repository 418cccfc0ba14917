import type { Config } from '../../config/schema.js'

/** Windows PowerShell writes in the machine's old code page otherwise. Without a console it cannot be set, and then stays. */
const IN_UTF8 = 'try { [Console]::OutputEncoding = [System.Text.UTF8Encoding]::new($false) } catch { }; '
/** With `-Command` every failure ends with 1 otherwise, whatever the program's own code (about_PowerShell_exe). */
const OWN_EXIT_CODE = '\nif (-not $?) { if ($LASTEXITCODE) { exit $LASTEXITCODE } else { exit 1 } }'

/** How the platform's shell runs a script, without the owner's start-up files (SH-07). Not tried on Windows. */
export function shellWords(
  script: string,
  platform: NodeJS.Platform,
  windowsShell: Config['commands']['windows_shell'],
): [string, ...string[]] {
  if (platform !== 'win32' || windowsShell === 'git-bash') return ['bash', '--noprofile', '--norc', '-c', script]
  return [
    'powershell.exe',
    ...['-NoLogo', '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-OutputFormat', 'Text'],
    ...['-Command', `${IN_UTF8}${script}${OWN_EXIT_CODE}`],
  ]
}

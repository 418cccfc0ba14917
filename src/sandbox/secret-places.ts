import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../lib/errors.js'
import type { HiddenPlace } from './confinement.js'

/** Below the owner's home folder: keys, sign-ins, and what programs keep of them (PA-06). */
const FOLDERS = [
  '.ssh .gnupg .aws .azure .kube .docker .config/gcloud .config/gh .config/hub .config/glab-cli .config/op .config/rclone',
  '.config/containers .config/doctl .config/hcloud .config/sops .password-store .local/share/keyrings .local/share/kwalletd',
  '.terraform.d .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge',
  '.config/1Password .config/Bitwarden .config/KeePassXC .bitcoin .ethereum .electrum .oci .minikube .pulumi',
  'Library/Keychains Library/Cookies',
].flatMap((line) => line.split(' '))
const FILES = [
  '.netrc .pgpass .my.cnf .git-credentials .config/git/credentials .pypirc .cargo/credentials .cargo/credentials.toml',
  '.gem/credentials .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .vault-token .s3cfg .boto',
  '.dockercfg .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .config/configstore/firebase-tools.json',
  '.bash_history .zsh_history .node_repl_history .python_history .psql_history .mysql_history .sqlite_history',
].flatMap((line) => line.split(' '))
/** Read by programs that confined commands need; hidden only where they hold a sign-in. */
const FILES_WITH_SECRETS: readonly [file: string, secret: RegExp][] = [
  ['.npmrc', /_auth|_password/i],
  ['.yarnrc.yml', /npmAuth/i],
  ['.config/pip/pip.conf', /:\/\/[^/\s]+@/],
]
const SYSTEM_FILES = ['/etc/shadow', '/etc/gshadow', '/etc/shadow-', '/etc/gshadow-', '/etc/sudoers']

/** Those of the owner's secret places that exist, by their real paths. */
export function secretPlaces(home: string): HiddenPlace[] {
  const found = [
    ...[...FOLDERS, ...FILES].map((name) => placeAt(join(home, name))),
    ...FILES_WITH_SECRETS.map(([name, secret]) => placeAt(join(home, name), secret)),
    ...SYSTEM_FILES.map((path) => placeAt(path)),
  ]
  return found.filter((place) => place !== undefined)
}

function placeAt(path: string, secret?: RegExp): HiddenPlace | undefined {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
    const real = realpathSync.native(path)
    const stat = statSync(real)
    if (stat.isDirectory()) return { path: real, kind: 'folder' }
    if (secret !== undefined && !secret.test(readFileSync(real, 'utf8'))) return undefined
    return { path: real, kind: 'file' }
  } catch (error) {
    // A link to nowhere, or what this user may not see: commands cannot either.
    if (['ENOENT', 'EACCES', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '')) return undefined
    throw error
  }
}

import type { CommandClass } from './classes.js'
import type { Word } from './types.js'

const SECRET_NAMES =
  /^(?:\.env(?!\.(?:example|sample|template|dist)$)(?:[.-].*|rc)?|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd|\.git-credentials|\.dockercfg|\.vault-token|\.my\.cnf|credentials(?:\.json|\.toml|\.db)?|shadow-?|gshadow-?|sudoers|.*_history|secrets?\.(?:ya?ml|json|toml)|owner\.token|environ|auth\.json|\.claude\.json|master\.key|\.boto|\.s3cfg|service[-_]account.*\.json)$/i
const SECRET_FOLDERS =
  /(?:^~|^\/root|^\/(?:home|Users)\/[^/]+)\/\.kiki(?:\/|$)|(?:^|\/)(?:\.ssh|\.aws|\.codex|run\/secrets|\.gnupg|\.azure|\.kube|gcloud|\.password-store|keychains|\.local\/share\/keyrings|\.mozilla|\.docker\/config\.json|gh\/hosts\.yml|sudoers\.d|etc\/ssl\/private|proc\/kcore|dev\/k?mem)(?:\/|$)/i
// What a glob might stand for; only a glob that spells out a part of one counts, or `*` would always be a secret.
const SAMPLES = ['.env', '.env.local', '.netrc', '.npmrc', 'id_rsa', 'id_ed25519', 'id_ecdsa', 'server.pem', 'a.key']
const FOLDER_SAMPLES = ['.ssh', '.aws', '.gnupg', '.kube', '.codex']

/** Whether a path looks like one of a secret (PA-06's list and the usual credential stores), by its spelling. */
export function looksSecret(path: string): boolean {
  const clean = path.replace(/\/+/g, '/').replace(/(?:^|\/)\.(?=\/)/g, '')
  const parts = clean.split('/')
  if (SECRET_NAMES.test(parts.at(-1) ?? '') || SECRET_FOLDERS.test(clean)) return true
  // These folders hold secrets under names that no list has in full.
  if (/^\/(?:proc|etc|p[^/]*[*?[{][^/]*|e[^/]*[*?[{][^/]*|run)\//.test(normalPath(clean)) && /[*?[{]/.test(clean))
    return true
  return parts.some((part, index) => {
    if (!/[*?[{]/.test(part) || !/[^*?[\]{},.]|^\../.test(part)) return false
    const pattern = globPattern(part)
    return [...(index === parts.length - 1 ? SAMPLES : []), ...FOLDER_SAMPLES].some((name) => pattern.test(name))
  })
}

function globPattern(glob: string): RegExp {
  const source = glob
    .replace(/[.+^$()|\\]/g, '\\$&')
    .replace(/\{[^}]*\}?|\[[^\]]*\]?|[*?]/g, (piece) => (piece === '?' || piece.startsWith('[') ? '.' : '.*'))
    .replaceAll('}', '')
  return new RegExp(`^${source}$`, 'i')
}

/** `secret_access` where the word, a path behind its `=`, `@` or `:`, names a secret. */
export function secretsIn(word: Word): CommandClass[] {
  const pieces = [word.value, ...word.value.split(/[=@:,]/)]
  return pieces.some((piece) => piece !== '' && looksSecret(piece)) ? ['secret_access'] : []
}

const SECRET_VARIABLE = /(?:KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|CREDENTIALS?|AUTH)(?:$|_)/i

export function isSecretVariable(name: string): boolean {
  return SECRET_VARIABLE.test(name)
}

/** The path with `.`, `//` and what `..` undoes taken out; leading `..` stay. */
export function normalPath(path: string): string {
  const rooted = path.startsWith('/')
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..' && parts.at(-1) !== '~') parts.pop()
    else if (part === '..' && parts.at(-1) === '~') parts.splice(0, parts.length, '~', '..')
    else if (!(part === '..' && rooted)) parts.push(part)
  }
  return `${rooted ? '/' : ''}${parts.join('/')}` || (rooted ? '/' : '.')
}

const SYSTEM =
  /^\/(?:etc|usr|bin|sbin|lib\w*|boot|opt|sys|proc|System|Library|Applications|private\/etc)(?:\/|$)|^\/var(?:\/(?!tmp\/|folders\/)|$)/
const WINDOWS_DRIVE = /^(?:[a-z]:|\/mnt\/[a-z]|\/[a-z])\/?\*?$/i

/** A folder that belongs to the system and not to one user. */
export function isSystemPath(path: string): boolean {
  return SYSTEM.test(normalPath(path))
}

/**
 * What losing a whole tree would be: the root, a folder right below it, a home or what lies right in it, the
 * system's folders, or above the working folder.
 */
export function isBeyondUndoing(path: string): boolean {
  const whole = normalPath(path)
  const folder = whole.replace(/\/(?:\*+|\.\*|\{.*\}|\[.*\].*|\?+)$/, '') || '/'
  if (folder === '/' || /^\/[^/]*$/.test(folder) || WINDOWS_DRIVE.test(folder)) return true
  if (/^(?:\/home|\/Users|\/root)(?:\/[^/]*)?$/.test(folder) || /^\/(?:home|Users)\/[^/]+\/[^/]*$/.test(whole))
    return true
  if (/^~[^/]*(?:\/[^/]*)?$/.test(whole) || /^~[^/]*(?:\/\.\.|$)/.test(folder)) return true
  return isSystemPath(folder) || /^\.\.(?:\/|$)/.test(whole) || /^\/\*|^\/\.\*/.test(whole)
}

/** A path outside of where relative paths lead. */
export function isElsewhere(path: string): boolean {
  const whole = normalPath(path)
  return whole.startsWith('/') || whole.startsWith('~') || whole.startsWith('..')
}

const HARMLESS_DEVICES = /^\/dev\/(?:null|zero|full|stdin|stdout|stderr|tty|fd\/\d+|u?random)$/

/** The classes of writing to a path; none for `/dev/null` and its like. */
export function classesOfWriting(target: Word): CommandClass[] {
  const path = target.value
  const plain = normalPath(path)
  if (target.known && HARMLESS_DEVICES.test(plain)) return []
  if (/^\/dev\/(?:tcp|udp)\//.test(path)) return ['network_egress']
  if (/^\/dev\/(?!shm\/)/.test(plain)) return ['file_write', 'destructive']
  if (/^\/(?:proc|sys)\//.test(plain) || isSystemPath(plain)) return ['file_write', 'system_change']
  return looksSecret(path) ? ['file_write', 'secret_access'] : ['file_write']
}

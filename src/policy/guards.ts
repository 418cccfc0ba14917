import { homedir } from 'node:os'
import { join } from 'node:path'
import { foldPath } from '../lib/spelling.js'
import { pathGlob } from './path-glob.js'

/** Folders of tools that run what is in them: git, editors, agents, Kiki itself (PA-05); `git~1` is `.git` in Windows' short names. */
const GUARDED_FOLDERS = new Set(
  '.git .kiki .vscode .idea .zed .fleet .devcontainer .husky .claude .cursor .codex .gemini .windsurf .continue .direnv .githooks .ssh git~1 kiki~1'.split(
    ' ',
  ),
)
/** Of these the names above a session's folder count too: no owner means a session to work freely in the middle of one. */
const GUARDED_ABOVE = new Set(['.git', '.kiki', 'git~1', 'kiki~1'])
/** Folders that count only below a certain other: of git, shells and what starts by itself at sign-in. */
const GUARDED_PAIRS = new Set(
  ['git', 'fish', 'nushell', 'autostart', 'systemd', 'environment.d'].map((name) => `.config/${name}`),
)
/** Files that a shell, git, an editor or a package manager runs or takes its commands from. */
const GUARDED_FILES = new Set(
  [
    '.gitmodules .gitattributes .gitconfig .envrc .direnvrc .mcp.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .bunfig.toml',
    '.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .cshrc .tcshrc',
    '.login .kshrc .inputrc config.fish .vimrc .gvimrc .exrc .nvimrc .emacs .tmux.conf .screenrc .gdbinit .lldbinit .wgetrc .curlrc',
    '.pre-commit-config.yaml lefthook.yml .lefthook.yml .pypirc .condarc .mise.toml mise.toml .tool-versions .rtx.toml',
  ].flatMap((line) => line.split(' ')),
)

/** Files that hold keys or sign-ins, by their names (PA-06). */
const SECRET_NAME = new RegExp(
  `^(?:${[
    '\\.env(?:\\..*)?|.*\\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg)|id_(?:rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk)',
    '\\.netrc|_netrc|\\.pgpass|\\.my\\.cnf|\\.git-credentials|\\.pypirc|\\.htpasswd|\\.vault-token|\\.dockercfg|\\.s3cfg|\\.boto',
    'credentials(?:\\.(?:json|toml|xml|yml|yaml))?|\\.credentials\\.json|(?:client_)?secrets?\\.(?:json|toml|yml|yaml|env)',
    'service[-_]?account.*\\.json|oauth_creds\\.json|auth\\.json',
  ].join('|')})$`,
)
const NOT_SECRET_NAME = /^(?:\.env\.(?:example|sample)|.*\.pub)$/
const SECRET_FOLDERS = new Set('.ssh .gnupg .aws .azure .kube .password-store keyrings'.split(' '))
const OPEN_IN_SECRET_FOLDERS = /^(?:known_hosts|.*\.pub)$/

/** Which files look like secrets here. */
export interface SecretNames {
  has(path: string): boolean
}

/**
 * @param more `permission.secret_files`, and `less` `permission.not_secret_files`: globs, over the whole path where they hold a
 * `/`, else over the name. `less` wins.
 */
export function secretNames({ more, less }: { more: readonly string[]; less: readonly string[] }): SecretNames {
  const [added, removed] = [more.map(matcher), less.map(matcher)]
  return {
    has(path) {
      const folded = foldPath(path)
      if (removed.some((matches) => matches(folded))) return false
      return looksSecret(folded) || added.some((matches) => matches(folded))
    },
  }
}

function looksSecret(folded: string): boolean {
  const name = folded.slice(folded.lastIndexOf('/') + 1)
  if (NOT_SECRET_NAME.test(name)) return false
  if (SECRET_NAME.test(name)) return true
  return folded.includes('/.') || folded.includes('/keyrings/')
    ? folded
        .split('/')
        .slice(0, -1)
        .some((folder) => SECRET_FOLDERS.has(folder)) && !OPEN_IN_SECRET_FOLDERS.test(name)
    : false
}

function matcher(pattern: string): (folded: string) => boolean {
  const whole = pattern.startsWith('~/') ? join(homedir(), pattern.slice(2)) : pattern
  const glob = pathGlob(foldPath(whole).replace(/^\//, ''))
  if (!whole.includes('/')) return (folded) => glob.matches(folded.slice(folded.lastIndexOf('/') + 1))
  return (folded) => glob.matches(folded.replace(/^\//, ''))
}

/**
 * Whether writing there asks, whatever the mode: what is there is run, or gives rights, without anybody being asked then (PA-05).
 * @param root the session's folder that holds `path`: what the owner chose to work in is not guarded for its own name.
 */
export function isGuarded(path: string, root = ''): boolean {
  const names = foldPath(path).split('/')
  const above = root === '' || root === '/' || !isBelow(path, root) ? 0 : root.split('/').length
  return (
    names.some((name, index) =>
      index < above ? GUARDED_ABOVE.has(name) : GUARDED_FOLDERS.has(name) || isPair(names[index - 1], name),
    ) ||
    (names.length > above && GUARDED_FILES.has(names.at(-1) ?? ''))
  )
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`)
}

/** Also a bare repository's own hooks and settings. */
function isPair(parent: string | undefined, name: string): boolean {
  if (parent === undefined) return false
  return GUARDED_PAIRS.has(`${parent}/${name}`) || (parent.endsWith('.git') && (name === 'hooks' || name === 'config'))
}

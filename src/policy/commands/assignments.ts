import type { CommandClass } from './classes.js'
import type { Assignment } from './types.js'

// Makes bash, the loader or a program run something else, or look for its programs or settings elsewhere.
const STEERING = new RegExp(
  `^(?:${[
    'BASH_ENV|ENV|IFS|PATH|HOME|SHELL|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|BASH_LOADABLES_PATH|BASH_XTRACEFD|PS[0-4]',
    'PROMPT_COMMAND|CDPATH|GLOBIGNORE|FIGNORE|EXECIGNORE|HISTFILE|HISTCONTROL|ZDOTDIR|FPATH|PWD|OLDPWD',
    'LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|NLSPATH|TERMINFO.*|GLIBC_TUNABLES|MALLOC_.*|TMPDIR|TEXTDOMAIN.*',
    '.*(?:EDITOR|PAGER|BROWSER|ASKPASS)|VISUAL|LESS.*|MAN.*|MORE|GROFF.*|TROFF.*|GIT_.*|SSH_.*|RSYNC_.*|SVN_.*|HG.*',
    'NODE_(?!ENV$).*|NPM_CONFIG_.*|YARN_.*|PNPM_.*|COREPACK_.*|BUN_.*|DENO_.*|PYTHON.*|PIP_.*|UV_.*|VIRTUAL_ENV|CONDA.*',
    'PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|JAVA.*|_JAVA_OPTIONS|JDK_.*|CLASSPATH|MAVEN_.*|GRADLE_.*|GO.*|CARGO_.*|RUST.*|PHP.*',
    'CC|CXX|CPP|LD|AR|AS|MAKE|MAKEFLAGS|MAKEFILES|CFLAGS|LDFLAGS|GCC_.*|COMPILER_PATH|LUA.*|AWK.*|GAWK.*|TCL.*|R_.*',
    'APT_.*|GREP_.*|RIPGREP_.*|TAR_OPTIONS|GZIP|BZIP2?|XZ_.*|ZSTD_.*|ZIPOPT|UNZIP.*|FZF_.*|BAT_.*|FD_.*|DELTA_.*|JQ_.*',
    'VIM.*|EXINIT|NVIM_.*|EMACS.*|XDG_.*|DBUS_.*|SYSTEMD_.*|OPENSSL_.*|SSL.*|CURL_.*|WGETRC|PG.*|PSQL.*|MYSQL_.*|SQLITE.*',
    'DOCKER_.*|COMPOSE_.*|KUBE.*|HELM_.*|TF_.*|AWS_.*|AZURE_.*|GOOGLE_.*|CLOUDSDK_.*|SUDO_.*|QT_.*|GTK_.*|KIKI_.*',
  ].join('|')})$`,
  'i',
)
const HARMLESS =
  /^(?:CI|NODE_ENV|LANG|LANGUAGE|LC_\w+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR\w*|TERM|COLUMNS|LINES|DEBUG|VERBOSE)$/
const HARMLESS_PAIRS =
  /^(?:(?:GIT_|MAN)?PAGER=(?:cat|)|GIT_TERMINAL_PROMPT=0|GIT_OPTIONAL_LOCKS=0|(?:GIT_)?EDITOR=(?:true|:))$/

/** Whether the variable, once set, can make another program run, whoever sets it and how. */
export function isSteering(name: string): boolean {
  return STEERING.test(name)
}

/** Why an assignment makes a script opaque: a program then runs or reads something that the script does not show. */
export function refusalOfAssignment(assignment: Assignment): string | undefined {
  if (!isSteering(assignment.name) || isHarmlessPair(assignment)) return undefined
  return `it sets ${assignment.name}, which can make another program run`
}

function isHarmlessPair({ name, value }: Assignment): boolean {
  if (value !== undefined && !value.static) return false
  return HARMLESS_PAIRS.test(`${name}=${value?.value ?? ''}`)
}

/** `IFS= read -r line` changes how this one builtin splits its line, and nothing else. */
export function isForRead(program: string | undefined, assignment: Assignment): boolean {
  return program === 'read' && assignment.name === 'IFS' && assignment.value?.static !== false
}

/** `unknown` where a program is started with a variable of which Kiki does not know what it does. */
export function classesOfEnvironment(assignments: readonly Assignment[]): CommandClass[] {
  return assignments.every((one) => isHarmlessAssignment(one)) ? [] : ['unknown']
}

/** An assignment that no rule needs to spell out. */
export function isHarmlessAssignment(assignment: Assignment): boolean {
  return HARMLESS.test(assignment.name) || isHarmlessPair(assignment)
}

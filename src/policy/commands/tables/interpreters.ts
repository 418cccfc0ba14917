import type { CommandClass } from '../classes.js'
import { type Call, type ProgramTable, same, tool } from '../rules.js'

const RUNS: CommandClass[] = ['code_execution']

/** Shells: what `-c` holds is parsed, anything else is a file or the standard input. */
export const SHELLS: ReadonlySet<string> = new Set(
  'sh bash dash zsh ksh mksh ash fish rbash csh tcsh yash posh'.split(' '),
)

/** Programs that run the text of their standard input when they are given no file. */
export const INTERPRETERS: ReadonlySet<string> = new Set(
  'python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua luajit tclsh wish expect Rscript R julia ghci irb iex erl elixir guile racket sbcl clisp scala groovy jshell osascript gnuplot octave ipython bc dc gawk m4 psql mysql sqlite3 ed ex pwsh powershell jjs swift'.split(
    ' ',
  ),
)

function versionOnly(call: Call): readonly CommandClass[] {
  return call.words.length === 1 && /^(?:--version|-V|-v|--help|-h)$/.test(call.words[0]?.value ?? '')
    ? ['read_only']
    : RUNS
}

export const INTERPRETER_RULES: ProgramTable = {
  ...same([...SHELLS].join(' '), tool([], { operands: 'own', check: versionOnly })),
  ...same(
    'python python2 python3 pypy pypy3 node nodejs perl ruby php lua luajit deno R julia ghci irb iex elixir swift java',
    tool([], { operands: 'own', check: versionOnly }),
  ),
  ...same(
    'tclsh wish expect Rscript guile racket sbcl clisp scala groovy jshell gnuplot octave ipython erl jjs m4 dotnet mono wine jupyter gdbus dbus-send',
    tool(RUNS),
  ),
  ...same('bc dc', tool(RUNS)),
  ...same(
    'vi vim nvim view vimdiff gvim ex ed emacs emacsclient nano pico joe micro helix hx code cursor subl mate kak',
    tool(['file_write', 'code_execution']),
  ),
  ...same('docker podman nerdctl', tool([], { operands: 'own', check: containing })),
  ...same(
    'docker-compose podman-compose buildah skopeo lxc lxd incus vagrant multipass limactl',
    tool(['code_execution', 'network_egress', 'unknown']),
  ),
  ...same('kubectl oc k9s helm kustomize', tool(['network_egress'], { check: orchestrating })),
  ...same(
    'terraform tofu pulumi terragrunt ansible ansible-playbook packer',
    tool(['network_egress', 'code_execution', 'file_write'], {
      check: (call) => (call.words.some(({ value }) => /^(?:-?-?destroy|down)$/.test(value)) ? ['destructive'] : []),
    }),
  ),
  ...same(
    'claude codex gemini aider cursor-agent kiki ollama llm',
    tool(['code_execution', 'network_egress', 'unknown']),
  ),
}

function containing(call: Call): readonly CommandClass[] {
  const words = call.words.map(({ value }) => value)
  const text = words.filter((word) => !word.startsWith('-')).join(' ')
  const deletesData = /^(?:volume (?:rm|prune)|system prune|image prune|container prune|builder prune)/.test(text)
  if (deletesData) return ['file_delete', 'destructive', ...RUNS]
  if (
    /^(?:ps|images|logs|inspect|version|info|top|port|diff|stats|history|image ls|container ls|volume ls|network ls)\b/.test(
      text,
    )
  )
    return words.some((word) => /^(?:-H|--host|--context|--config)/.test(word))
      ? ['network_egress', 'unknown']
      : ['read_only']
  // A container with the host's root, devices or socket is the host.
  const whole = words.some(
    (word, at) =>
      /^--(?:privileged|cap-add|device|pid=host|security-opt|userns=host|ipc=host)/.test(word) ||
      /^(?:-v=?|--volume=?|--mount=?)?(?:[^:]*source=)?(?:\/|\/etc[^:]*|\/root[^:]*|\/var\/run\/docker\.sock|\/home\/?):/.test(
        word,
      ) ||
      (word === 'host' && /^--(?:pid|userns|ipc)$/.test(words[at - 1] ?? '')),
  )
  if (/^(?:run|exec|create|compose|build|buildx|start|restart|up)\b/.test(text))
    return whole ? [...RUNS, 'network_egress', 'privilege_escalation'] : [...RUNS, 'network_egress']
  if (/^(?:stop|kill|pause|unpause|wait)\b/.test(text)) return ['process_control']
  if (/^(?:rm|rmi|container rm|image rm)\b/.test(text)) return ['file_delete', 'process_control']
  if (/^(?:pull|push|login|logout|search)\b/.test(text)) return ['network_egress', 'file_write']
  return [...RUNS, 'unknown']
}

function orchestrating(call: Call): readonly CommandClass[] {
  const action = call.words.find(({ value }) => !value.startsWith('-'))?.value ?? ''
  if (/^(?:delete|uninstall|drain|destroy)$/.test(action)) return ['destructive']
  if (/^(?:exec|run|debug|attach|cp|port-forward|proxy|edit|plugin)$/.test(action)) return [...RUNS, 'unknown']
  if (/^(?:get|describe|logs|version|top|explain|api-resources|cluster-info|list|status)$/.test(action))
    return call.words.some(({ value }) => /^secrets?\b/.test(value)) ? ['secret_access'] : []
  return ['system_change', 'unknown']
}

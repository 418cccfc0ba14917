import type { CommandClass } from './classes.js'
import { type OptionSpec, optionSpec } from './options.js'

/** A program that starts another one named in its own words. */
export interface Wrapper {
  /** What the wrapper does by itself. */
  classes: readonly CommandClass[]
  options: OptionSpec
  /** Operands before the inner program (`timeout 5 CMD`). */
  skip: number
  /** `NAME=value` operands before the inner program are assignments. */
  assigns: boolean
  /** Options whose value is text for a shell. */
  scripts: readonly string[]
  /** All operands after `skip` are joined to one text for a shell (`ssh host CMD`, `eval CMD`). */
  joins: boolean
  /** More words that nobody has written are appended, or replace parts (`xargs`). */
  appends: boolean
}

function wrapper(classes: readonly CommandClass[], options: string, more: Partial<Wrapper> = {}): Wrapper {
  const plain = { skip: 0, assigns: false, scripts: [], joins: false, appends: false }
  return { classes, ...plain, ...more, options: optionSpec(`| ${options}`) }
}

const RUNS: CommandClass[] = ['code_execution']
const ROOT: CommandClass[] = ['privilege_escalation']
const shell = wrapper([], '-abcefhiklmnprstuvxBCEHPTD -o: -O: --login --norc --noprofile --posix --restricted')

/** Every program that Kiki looks through (PO-04). A wrapper's own harmless use is `read_only`. */
const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  env: wrapper(
    ['read_only'],
    '-i0v -u: -C: -S: --ignore-environment --null --unset: --chdir: --split-string: --debug',
    { assigns: true, scripts: ['-S', '--split-string'] },
  ),
  sudo: wrapper(
    ROOT,
    '-AbBEeHnPSkKsilvV -u: -g: -h: -p: -C: -D: -R: -T: -U: -r: -t: --user: --group: --host: --preserve-env? --login --shell --non-interactive --stdin --background --set-home --chdir:',
    { assigns: true },
  ),
  doas: wrapper(ROOT, '-nLs -u: -C:'),
  su: wrapper(
    ROOT,
    '-lmpPfd -c: -s: -g: -G: -w: --command: --login --shell: --preserve-environment --session-command:',
    { scripts: ['-c', '--command', '--session-command'], skip: 1 },
  ),
  runuser: wrapper(ROOT, '-lmpPf -u: -c: -s: -g: -G: --user: --command: --login', { scripts: ['-c', '--command'] }),
  pkexec: wrapper(ROOT, '--user: --disable-internal-agent --keep-cwd'),
  gosu: wrapper(ROOT, '', { skip: 1 }),
  setpriv: wrapper(ROOT, '--reuid: --regid: --clear-groups --init-groups --no-new-privs --inh-caps: --bounding-set:'),
  capsh: wrapper([...ROOT, 'unknown'], ''),
  timeout: wrapper(['read_only'], '-v -k: -s: --kill-after: --signal: --foreground --preserve-status --verbose', {
    skip: 1,
  }),
  nice: wrapper(['read_only'], '-0123456789 -n: --adjustment:'),
  ionice: wrapper(['read_only'], '-t -c: -n: -p: --class: --classdata: --ignore'),
  chrt: wrapper(['process_control'], '-abdfior -p: -T: -P: -D:', { skip: 1 }),
  taskset: wrapper(['read_only'], '-a -c --cpu-list', { skip: 1 }),
  nohup: wrapper(['read_only'], ''),
  setsid: wrapper(['process_control'], '-cfw --ctty --fork --wait'),
  stdbuf: wrapper(['read_only'], '-i: -o: -e: --input: --output: --error:'),
  time: wrapper(['read_only'], '-pvaq -f: --portability --verbose --format:', { assigns: true }),
  command: wrapper(['read_only'], '-pvV'),
  builtin: wrapper(['read_only'], ''),
  exec: wrapper(['read_only'], '-cl -a:'),
  eval: wrapper(['read_only'], '', { joins: true }),
  xargs: wrapper(
    ['read_only'],
    '-0oprtx -a: -d: -E: -I: -i? -L: -l? -n: -P: -s: -e? -J: -R: -S: --null --arg-file: --delimiter: --replace? --max-args: --max-procs: --max-lines? --max-chars: --no-run-if-empty --interactive --verbose --exit --open-tty',
    { appends: true },
  ),
  parallel: wrapper(
    RUNS,
    '-0kqX -j: -n: -N: -I: -a: -d: --jobs: --keep-order --bar --dry-run --halt: --colsep: --delay: --tag',
    { joins: true, appends: true },
  ),
  watch: wrapper(['read_only'], '-bcdegtxpw -n: --interval: --differences? --no-title --exec --color', { joins: true }),
  script: wrapper(['file_write'], '-aefq -c: -t? --command: --quiet --append --flush --return', {
    scripts: ['-c', '--command'],
  }),
  flock: wrapper(['file_write'], '-senuxoF -c: -w: -E: --shared --exclusive --nonblock --timeout: --command:', {
    scripts: ['-c', '--command'],
    skip: 1,
  }),
  ssh: wrapper(
    ['network_egress'],
    '-1246AaCfGgKkMNnqsTtVvXxYy -B: -b: -c: -D: -E: -e: -F: -I: -i: -J: -L: -l: -m: -O: -o: -p: -Q: -R: -S: -W: -w:',
    { joins: true, skip: 1 },
  ),
  chroot: wrapper(['privilege_escalation', 'system_change'], '--userspec: --groups: --skip-chdir', { skip: 1 }),
  unshare: wrapper(ROOT, '-imnpuUCTfr -R: -S: -G: --mount --net --pid --user --fork --map-root-user --mount-proc?'),
  nsenter: wrapper(ROOT, '-aFmnpiuUCTrw -t: -S: -G: --target: --all'),
  'systemd-run': wrapper(
    ['system_change', 'process_control'],
    '-GPqrtS -p: -u: -E: -H: -M: --user --scope --pty --unit: --property: --wait --collect --quiet',
  ),
  fakeroot: wrapper(RUNS, '-u -l: -s: -i:'),
  busybox: wrapper(['read_only'], ''),
  toybox: wrapper(['read_only'], ''),
  strace: wrapper(
    ['process_control', 'code_execution'],
    '-cCdDfFhiknqrtTvVwxyY -a: -b: -e: -E: -I: -o: -O: -p: -P: -s: -S: -u: -U: -X:',
  ),
  ltrace: wrapper(['process_control', 'code_execution'], '-bcCfhiLrStTV -a: -e: -l: -n: -o: -p: -s: -u: -x:'),
  caffeinate: wrapper(['process_control'], '-dimsu -t: -w:'),
  unbuffer: wrapper(RUNS, '-p'),
  rlwrap: wrapper(RUNS, '-a -c -f: -H:'),
  entr: wrapper(RUNS, '-acdnprsz'),
  watchexec: wrapper(RUNS, '-crnw: -e: -i: --clear --restart'),
  'dbus-run-session': wrapper(RUNS, ''),
  'xvfb-run': wrapper(RUNS, '-a -e: -n: -s: --auto-servernum --server-args:'),
  firejail: wrapper(RUNS, ''),
  bwrap: wrapper([...RUNS, 'unknown'], ''),
  direnv: wrapper([...RUNS, 'unknown'], '', { skip: 2 }),
  npx: wrapper(
    ['file_write', 'code_execution', 'package_install', 'network_egress'],
    '-yq -p: -c: --yes --no --package: --call: --quiet --no-install',
    { scripts: ['-c', '--call'] },
  ),
  coproc: wrapper(RUNS, ''),
  dotenv: wrapper([...RUNS, 'secret_access'], '-e: -f: --'),
  ...Object.fromEntries(
    'sh bash dash zsh ksh mksh ash rbash fish yash posh csh tcsh'.split(' ').map((name) => [name, shell]),
  ),
}

const BY_NAME = new Map(Object.entries(WRAPPERS))

/** The wrapper of that name; undefined where the program starts nothing that its words name. */
export function wrapperOf(program: string): Wrapper | undefined {
  return BY_NAME.get(program)
}

/** Lines whose own words are followed by a command at a place that only the program knows. */
export const RUNNERS: readonly RegExp[] = [
  /^(?:uv|poetry|pdm|pipenv|hatch|rye) run /,
  /^(?:npm|pnpm|yarn|bundle|opam|mise|asdf|nix|docker compose) exec /,
  /^(?:docker|podman|kubectl|nerdctl) (?:exec|run) /,
  /^git (?:bisect run|submodule foreach|rebase .*(?:-x|--exec)) /,
]

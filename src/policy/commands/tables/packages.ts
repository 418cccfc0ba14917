import type { CommandClass } from '../classes.js'
import { type Call, type ProgramTable, same, tool } from '../rules.js'

const INSTALLS: CommandClass[] = ['file_write', 'code_execution', 'package_install', 'network_egress']
const RUNS: CommandClass[] = ['code_execution']

/** Picks the classes by the first operand; what is not listed is `unknown` and can run code. */
function byFirst(
  table: Readonly<Record<string, readonly CommandClass[]>>,
  valued = '',
): (call: Call) => readonly CommandClass[] {
  const picks = new Map(
    Object.entries(table).flatMap(([names, classes]) => names.split(' ').map((name) => [name, classes] as const)),
  )
  return (call) => {
    const nested = call.program === 'uv' && call.words[0]?.value === 'pip'
    const words = call.words
      .slice(nested ? 1 : 0)
      .filter((word, at, all) => !word.value.startsWith('-') && !valued.split(' ').includes(all[at - 1]?.value ?? '-'))
    const first = words[0]
    if (first === undefined && call.program === 'yarn') return asksVersion(call) ? [] : INSTALLS
    if (first === undefined || !first.known) return ['unknown']
    return picks.get(first.value) ?? ['code_execution', 'unknown']
  }
}

const asksVersion = (call: Call) => call.words.length === 1 && /^(?:--version|-v)$/.test(call.words[0]?.value ?? '')

const system = (table: Readonly<Record<string, readonly CommandClass[]>>) =>
  tool([], { operands: 'own', check: byFirst(table) })
/** Settings of apt, by an option or a file of them, name programs that it runs. */
function settingApt(call: Call): CommandClass[] {
  return call.words.some(({ value }) => /^-[a-z]*[oc]|^--[oc]/i.test(value)) ? ['code_execution', 'unknown'] : []
}

const apt = (table: Readonly<Record<string, readonly CommandClass[]>>) => {
  const bySub = byFirst(table)
  return tool([], { operands: 'own', check: (call) => [...bySub(call), ...settingApt(call)] })
}
const SYSTEM_INSTALLS: CommandClass[] = ['code_execution', 'package_install', 'network_egress', 'system_change']

const NPM_READS =
  /^(?:-[aglps]|--(?:all|json|long|parseable|global|depth(?:=\w+)?|prod|production|dev|silent|omit(?:=\w+)?|no-color))$/
const PIP_READS =
  /^(?:-[lqvV]+|--(?:user|local|editable|not-required|exclude-editable|format(?:=\w+)?|verbose|quiet|version|help|files|all|no-color|no-input|disable-pip-version-check))$/
const PIP_ASKS = /^-[a-zA-Z]*[oiuf]|^--(?:o|up|in|ex|fi|pre)/

/** Subcommands that only read, with options that could write a log or a cache, ask an index or name a program. */
function whileReading(harmless: RegExp, check: (call: Call) => readonly CommandClass[]) {
  return (call: Call): readonly CommandClass[] => {
    const found = check(call)
    const odd = call.words.filter(({ value }) => value.startsWith('-') && !harmless.test(value))
    if (odd.length === 0 || found.length === 0 || !found.every((one) => one === 'read_only')) return found
    const asks = harmless === PIP_READS && odd.some(({ value }) => PIP_ASKS.test(value))
    return [...(asks ? (['network_egress'] as const) : []), 'file_write', 'code_execution', 'unknown']
  }
}

const NODE = tool([], {
  operands: 'own',
  check: whileReading(
    NPM_READS,
    byFirst(
      {
        'install i in ci add update up upgrade isntall install-test it dedupe audit rebuild import link unlink':
          INSTALLS,
        'uninstall remove rm un prune': ['file_write', 'file_delete', 'code_execution'],
        'run run-script test t tst start stop restart build dev lint workspaces workspace': RUNS,
        'exec x dlx create init innit': INSTALLS,
        'ls list ll la why explain root prefix bin': ['read_only'],
        'view info show v outdated search ping whoami': ['network_egress'],
        'publish unpublish deprecate dist-tag owner access team': ['network_egress', 'code_execution', 'unknown'],
        'config get set cache pack version': ['file_write', 'code_execution', 'unknown'],
        'login logout adduser token': ['network_egress', 'secret_access', 'file_write'],
      },
      '--prefix -C --dir --cwd --workspace -w --filter -F',
    ),
  ),
})

const PYTHON = tool([], {
  operands: 'own',
  check: whileReading(
    PIP_READS,
    byFirst({
      'install download wheel sync add lock update upgrade tool': INSTALLS,
      'uninstall remove': ['file_write', 'file_delete'],
      'list freeze show check inspect tree': ['read_only'],
      'search index': ['network_egress'],
      'run shell build publish': ['code_execution', 'network_egress'],
    }),
  ),
})

export const PACKAGES: ProgramTable = {
  npm: NODE,
  // A project's settings name code that these run before anything else (yarnPath, plugins, pnpmfile).
  ...same('pnpm yarn bun cnpm', { ...NODE, classes: ['code_execution'] }),
  ...same('npx pnpx bunx uvx pipx nvm fnm volta corepack degit', tool(INSTALLS)),
  ...same('pip pip3', PYTHON),
  ...same('uv poetry pdm pipenv conda mamba micromamba', { ...PYTHON, classes: ['code_execution'] }),
  ...same(
    'gem bundle bundler composer cpan cpanm luarocks opam cabal stack mix rebar3 hex nimble',
    tool([...INSTALLS, 'unknown']),
  ),
  cargo: system({
    'build check test run bench clippy doc fix b t r c d': ['file_write', 'code_execution'],
    'install add update fetch': INSTALLS,
    'uninstall clean remove rm': ['file_write', 'file_delete'],
    fmt: ['file_write'],
    'tree metadata version search': ['code_execution', 'network_egress'],
    'publish login yank owner': ['network_egress', 'secret_access', 'unknown'],
  }),
  rustup: tool(INSTALLS),
  go: system({
    'build test run vet generate tool': ['file_write', 'code_execution'],
    'install get mod work': INSTALLS,
    // A module can name a toolchain, which is fetched and run first.
    'version list doc': ['code_execution', 'network_egress'],
    fmt: ['file_write'],
    'env clean': ['file_write', 'unknown'],
  }),
  ...same(
    'apt apt-get aptitude',
    apt({
      'install upgrade dist-upgrade full-upgrade build-dep': SYSTEM_INSTALLS,
      'remove purge autoremove autopurge': ['package_install', 'system_change'],
      update: ['network_egress', 'system_change'],
      'clean autoclean': ['system_change'],
      'list show search policy depends rdepends': ['read_only'],
      download: ['network_egress', 'file_write'],
    }),
  ),
  'apt-cache': tool(['read_only'], {
    options: '-niaq --names-only --installed --no-all-versions',
    operands: 'text',
    check: settingApt,
  }),
  'apt-config': tool(['unknown'], { check: settingApt }),
  ...same(
    'dpkg rpm',
    tool(['read_only'], {
      options: '-lLsSqpV --list --listfiles --status --search --print-architecture --get-selections',
      adds: {
        '-i -r -P -U -e -F --install --remove --purge --unpack --configure --eval:': [
          'code_execution',
          'package_install',
          'system_change',
        ],
      },
    }),
  ),
  ...same(
    'yum dnf zypper pacman apk brew port snap flatpak nix nix-env nix-shell emerge guix choco winget scoop pkg pkgin xbps-install',
    tool([...SYSTEM_INSTALLS, 'file_write']),
  ),
  ...same(
    'make gmake bmake ninja cmake meson bazel buck buck2 gradle gradlew mvn mvnw ant sbt scons rake just task invoke tox nox',
    tool(['file_write', 'code_execution']),
  ),
  ...same(
    'jest vitest mocha ava pytest py.test tsc tsx ts-node eslint prettier biome webpack vite rollup esbuild next nuxt astro turbo nx lerna rspec phpunit cypress playwright mypy ruff black flake8 pylint pyright',
    tool(['file_write', 'code_execution']),
  ),
  ...same('gcc g++ cc c++ clang clang++ rustc javac ld as tcc zig ghc ocaml', tool(['file_write', 'code_execution'])),
}

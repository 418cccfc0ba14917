import type { CommandClass } from '../classes.js'
import { isElsewhere, secretsIn } from '../paths.js'
import { type Call, hasOption, type ProgramRule, type ProgramTable, same, tool } from '../rules.js'

/** Configuration that only changes how things look; any other key can name a program. */
const HARMLESS_CONFIG =
  /^(?:color\.[\w.]+=\w+|core\.quotepath=\w+|core\.pager=(?:cat|)|advice\.\w+=\w+|user\.(?:name|email)=.*|log\.\w+=\w+|init\.defaultBranch=\w+|commit\.gpgsign=false|diff\.(?:renames|algorithm)=\w+)$/i

const RUNS: CommandClass[] = ['code_execution', 'unknown']

const SHOW =
  '-0123456789abBcCDghilmMpPqrRstuUvwWzEFAIL1 -n: -S: -G: -O: -U: -l: --oneline --graph --all --decorate? --no-decorate --stat? --shortstat --numstat --dirstat? --summary --name-only --name-status --patch --no-patch --raw --color? --no-color --pretty? --format: --abbrev-commit --no-abbrev-commit --abbrev? --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --invert-grep --all-match --regexp-ignore-case --fixed-strings --extended-regexp --perl-regexp --merges --no-merges --first-parent --reverse --follow --branches? --tags? --remotes? --date: --relative? --word-diff? --color-words? --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-space-at-eol --diff-filter: --find-renames? --find-copies? --no-renames --unified: --minimal --patience --histogram --cached --staged --merge-base --exit-code --quiet --check --no-index --no-ext-diff --no-textconv --left-right --cherry-pick --cherry --topo-order --date-order --author-date-order --show-signature --no-show-signature --full-history --simplify-by-decoration --no-prefix --text --binary --full-index --compact-summary --source --no-notes --notes? --submodule? --ignore-submodules? --pickaxe-all --pickaxe-regex --no-walk? --count --left-only --right-only --cc --combined-all-paths --boundary --function-context --inter-hunk-context: --no-mailmap --mailmap --encoding: --parents --children --not --name-rev --clear-decorations --decorate-refs: --no-relative --root --no-commit-id --stdin'

const reading = (
  options: string,
  parts: { operands?: 'text' | 'names'; check?: ProgramRule['check'] } = {},
): ProgramRule =>
  tool(['read_only'], {
    options,
    adds: {
      '--output:': ['file_write'],
      '--ext-diff --textconv --filters': ['code_execution', 'unknown'],
      '--upload-pack: --exec: --receive-pack: --open-files-in-pager?': ['code_execution', 'unknown'],
    },
    operands: parts.operands ?? 'names',
    check: parts.check ?? showingSecrets,
  })

/** `git show HEAD:.env` shows a secret as well as `cat` does. */
function showingSecrets(call: Call): CommandClass[] {
  return call.given.operands.flatMap(secretsIn)
}

const show = reading(SHOW)
const local = tool(['file_write'])
const runsHooks = tool(['file_write', 'code_execution'])

/** Lists unless it is given a name or told to change something. */
function lists(options: string, changes: string): ProgramRule {
  return tool(['read_only'], {
    options,
    adds: { [changes]: ['file_write'] },
    operands: 'own',
    check: (call) => {
      const lists = hasOption(
        call,
        '--list',
        '-l',
        '--contains',
        '--merged',
        '--no-merged',
        '--points-at',
        '--show-current',
      )
      return call.given.operands.length > 0 && !lists ? ['file_write'] : []
    },
  })
}

/** Rewriting what others have fetched (`--force`, `+ref`, `--mirror`, deleting) is past undoing. */
function pushing(call: Call): CommandClass[] {
  const words = call.words.map((word) => word.value)
  const forced = words.some((word) => isForcing(word))
  const runs = words.some((word) => /^--(?:rec|exe)/.test(word) || /^(?:ext|fd)::/.test(word))
  const hidden = call.words.some((word) => !word.known)
  return [
    ...(forced ? (['destructive'] as const) : []),
    ...(runs ? (['code_execution', 'unknown'] as const) : []),
    ...(hidden ? (['unknown'] as const) : []),
  ]
}

function isForcing(word: string): boolean {
  if (/^-[a-zA-Z]*[fd]/.test(word)) return true
  // Git takes any unambiguous beginning of an option.
  if (/^--(?:f|forc)\w*|^--(?:m|mi|mir|mirr|mirro|mirror|d|de|del|dele|delet|delete|pru|prun|prune)$/.test(word))
    return !/^--follow-tags$/.test(word)
  return /^\+\S/.test(word) || /^:[^:]/.test(word)
}

function configuring(call: Call): CommandClass[] {
  const reads = hasOption(call, '--get', '--get-all', '--get-regexp', '--list', '-l', '--get-urlmatch', '--show-origin')
  const { operands, unknown } = call.given
  const listing = reads || operands[0]?.value === 'get' || operands[0]?.value === 'list'
  if (hasOption(call, '--edit', '-e')) return ['code_execution', 'file_write']
  if (unknown.length > 0) return ['file_write', 'code_execution', 'unknown']
  if (listing || (operands.length === 1 && /^[\w-]+\.[\w.-]+$/.test(operands[0]?.value ?? '')))
    return operands.some(({ value }) => /credential|token|extraheader|password/i.test(value))
      ? ['secret_access']
      : ['read_only']
  // A key can name a program that git runs later (core.pager, alias.x, core.hooksPath).
  return hasOption(call, '--global', '--system')
    ? ['file_write', 'code_execution', 'system_change']
    : ['file_write', 'code_execution']
}

const remote = (classes: CommandClass[]): ProgramRule =>
  tool(classes, {
    check: (call) =>
      call.words.some(({ value }) => /^--(?:up|rec|exe|server-o|conf|temp)|^-[cu]|^(?:ext|fd)::/.test(value))
        ? ['code_execution', 'unknown']
        : call.words.some((word) => !word.known)
          ? ['unknown']
          : [],
  })

const stash: ProgramTable = {
  list: show,
  show,
  ...same('push save pop apply branch create store', local),
  ...same('drop clear', tool(['file_write', 'file_delete'])),
}

const SUBS: ProgramTable = {
  status: reading(
    '-sbvuz -u? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored? --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?',
  ),
  ...same(
    'log show diff whatchanged shortlog reflog-show diff-tree diff-index diff-files rev-list range-diff cherry',
    show,
  ),
  ...same(
    'blame annotate',
    reading(
      '-bcCefklMnpstw -L: -C? -M? --porcelain --line-porcelain --root --since: --date: --show-email --show-name --show-number',
    ),
  ),
  'rev-parse': reading(
    '-q -h --abbrev-ref? --short? --verify --quiet --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --show-superproject-working-tree --default: --revs-only --no-revs --flags --no-flags --path-format: --git-path:',
    { operands: 'text' },
  ),
  'ls-files': reading(
    '-cdmosiktuvzxf -x: -X: --cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude: --exclude-standard --error-unmatch --full-name --directory --no-empty-directory --eol --deduplicate --format:',
  ),
  'ls-tree': reading(
    '-rdtlz --long --name-only --name-status --full-name --full-tree --object-only --abbrev? --format:',
  ),
  'cat-file': reading('-tspe --batch? --batch-check? --batch-all-objects --unordered --buffer --allow-unknown-type'),
  ...same(
    'describe name-rev',
    reading(
      '--tags --all --long --always --dirty? --broken? --abbrev: --match: --exclude: --contains --exact-match --first-parent --candidates: --name-only --refs: --no-undefined',
      { operands: 'text' },
    ),
  ),
  ...same(
    'merge-base show-branch',
    reading('-a --all --octopus --is-ancestor --fork-point --independent --remotes --current --list --topo-order', {
      operands: 'text',
    }),
  ),
  ...same(
    'for-each-ref show-ref',
    reading(
      '-dsq --count: --sort: --format: --points-at: --merged? --no-merged? --contains? --heads --tags --head --dereference --hash? --verify --quiet --branches --exclude:',
      { operands: 'text' },
    ),
  ),
  ...same('count-objects', reading('-vH --verbose --human-readable', { operands: 'text' })),
  ...same('check-ignore check-attr', reading('-qvnza --quiet --verbose --non-matching --no-index --all --cached')),
  version: reading('--build-options', { operands: 'text' }),
  grep: reading(
    '-aIiwvhHEGPFnlLczopqer0123456789 -e: -f: -A: -B: -C: -m: --cached --untracked --no-index --text --ignore-case --word-regexp --invert-match --extended-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --files-without-match --count --color? --no-color --break --heading --show-function --function-context --and --or --not --all-match --max-depth: --recurse-submodules --quiet --max-count: --after-context: --before-context: --context: --only-matching',
    {
      check: (call) => [
        ...showingSecrets(call),
        ...(call.words.some(({ value }) => /^-[a-zA-Z]*O|^--op/.test(value))
          ? (['code_execution', 'unknown'] as const)
          : []),
      ],
    },
  ),
  branch: lists(
    '-arvql -vv --all --remotes --list --verbose --quiet --show-current --color? --no-color --column? --sort: --format: --contains? --no-contains? --merged? --no-merged? --points-at: --abbrev? --ignore-case',
    '-dDmMcCfut -u: --delete --move --copy --force --set-upstream-to: --unset-upstream --track? --no-track --edit-description',
  ),
  tag: lists(
    '-ln? --list --sort: --format: --contains? --no-contains? --merged? --no-merged? --points-at: --column? --color? --ignore-case -i',
    '-asdfvm -m: -F: -u: --annotate --sign --delete --force --message: --file: --local-user: --edit',
  ),
  'symbolic-ref': tool(['read_only'], {
    options: '-q --quiet --short --no-recurse',
    adds: { '-d --delete -m:': ['file_write'] },
    operands: 'own',
    check: ({ given }) => (given.operands.length > 1 ? ['file_write'] : []),
  }),
  remote: tool([], {
    options: '-v --verbose',
    operands: 'own',
    check: ({ given, words }) => {
      const first = given.operands[0]?.value
      if (first === undefined || first === 'get-url') return ['read_only']
      if (first === 'show' && words.some(({ value }) => value === '-n')) return ['read_only']
      return /^(?:show|update|prune)$/.test(first) ? ['network_egress', 'file_write'] : ['file_write', 'unknown']
    },
  }),
  config: tool([], {
    options:
      '-lze --get --get-all --get-regexp --get-urlmatch --list --show-origin --show-scope --name-only --null --local --global --system --worktree --bool --int --path --type: --default: --includes --no-includes --edit --unset --unset-all --add --replace-all',
    operands: 'own',
    check: configuring,
  }),
  stash: tool([], {
    options: '-ukqpaS -m: --include-untracked --keep-index --all --patch --staged',
    operands: 'own',
    check: (call) => stashing(call),
  }),
  worktree: tool([], {
    options: '',
    subs: {
      list: reading('-vz --porcelain --verbose'),
      add: runsHooks,
      ...same('move lock unlock repair', local),
      ...same('remove prune', tool(['file_write', 'file_delete'])),
    },
  }),
  reflog: tool([], {
    operands: 'own',
    check: ({ words }) =>
      /^(?:expire|delete|drop)$/.test(words[0]?.value ?? '')
        ? ['destructive', 'file_write']
        : words.every(({ value }) =>
              /^(?:show|exists|list|-n|-\d+|\d+|--all|--oneline|--date=\w+|HEAD|[\w/]+)$/.test(value),
            )
          ? ['read_only']
          : ['unknown'],
  }),
  ...same(
    'add init mv apply restore stage notes bundle replace update-index update-ref read-tree write-tree hash-object sparse-checkout pack-refs repack maintenance',
    local,
  ),
  ...same('commit merge rebase cherry-pick revert am checkout switch', tool(['file_write', 'code_execution'])),
  reset: tool(['file_write'], {
    check: (call) => (call.words.some(({ value }) => /^--h/.test(value)) ? ['file_delete'] : []),
  }),
  ...same(
    'rm clean',
    tool(['file_write', 'file_delete'], {
      operands: 'own',
      check: (call) => (call.given.operands.some((word) => isElsewhere(word.value)) ? ['unknown'] : []),
    }),
  ),
  ...same('gc prune', tool(['file_write', 'destructive'], { check: () => [] })),
  ...same(
    'filter-branch filter-repo bisect difftool mergetool submodule hook for-each-repo',
    tool(['file_write', 'code_execution', 'unknown']),
  ),
  ...same('fetch pull', remote(['network_egress', 'file_write', 'code_execution'])),
  clone: remote(['network_egress', 'file_write', 'code_execution']),
  push: tool(['network_egress', 'code_execution'], { check: pushing }),
  'ls-remote': remote(['network_egress']),
  archive: tool(['read_only'], {
    options: '-vl -9 --list --verbose --prefix:',
    adds: {
      '-o: --output:': ['file_write'],
      '--format:': ['unknown'],
      '--remote:': ['network_egress'],
      '--exec:': ['code_execution', 'unknown'],
    },
    operands: 'text',
  }),
  'format-patch': tool(['file_write']),
  ...same('send-email imap-send svn p4 daemon instaweb', tool(['network_egress', 'code_execution', 'unknown'])),
  credential: tool(['secret_access']),
  'credential-store': tool(['secret_access', 'file_write']),
  lfs: tool(['network_egress', 'file_write', 'code_execution']),
}

function stashing(call: Call): CommandClass[] {
  const first = call.given.operands[0]?.value
  const rule = first === undefined ? local : stash[first]
  if (rule === undefined) return ['unknown']
  if (first !== 'list' && first !== 'show') return [...rule.classes]
  const extra = call.words
    .slice(1)
    .every(({ value }) => /^(?:-p|--patch|--stat|--oneline|-n|-\d+|\d+|stash@\{\d+\})$/.test(value))
  return extra ? ['read_only'] : ['unknown']
}

export const GIT: ProgramTable = {
  git: tool([], {
    options:
      '-P -C: -c: -v -h --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects --version',
    adds: {
      '-p --paginate': ['unknown'],
      '--git-dir: --work-tree: --exec-path? --config-env: --namespace: --super-prefix: --attr-source:': [
        'code_execution',
        'unknown',
      ],
    },
    subs: SUBS,
    check: (call) => {
      if (call.words.length === 1 && /^(?:--version|-v)$/.test(call.words[0]?.value ?? '')) return ['read_only']
      const pairs = call.given.options.filter(({ name }) => name === '-c').map(({ value }) => value)
      if (!pairs.every((pair) => pair?.static === true && HARMLESS_CONFIG.test(pair.value))) return RUNS
      // Another repository's own settings name programs (core.fsmonitor), and a client may have written them.
      return hasOption(call, '-C') ? ['code_execution'] : []
    },
  }),
  ...same(
    'gh glab',
    tool(['network_egress', 'unknown'], {
      check: (call) =>
        /\brepo delete\b|\bdelete\b/.test(call.words.map(({ value }) => value).join(' ')) ? ['destructive'] : [],
    }),
  ),
  ...same('hg svn jj', tool(['unknown'])),
}

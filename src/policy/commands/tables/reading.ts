import type { CommandClass } from '../classes.js'
import { classesOfWriting, isSecretVariable, secretsIn } from '../paths.js'
import { type Call, hasOption, type ProgramTable, same, tool } from '../rules.js'

// Programs that only show something, whatever their options are.
const PLAIN = tool(['read_only'])
const NAMES = tool(['read_only'], { operands: 'names' })
const TEXT = tool(['read_only'], { operands: 'text' })

const GREP =
  '-EFGPivwxcLlqsnHhrRabozUuTZIyV0123456789 -e: -f: -m: -A: -B: -C: -d: -D: --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case --invert-match --word-regexp --line-regexp --count --color? --colour? --files-with-matches --files-without-match --max-count: --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: --line-number --initial-tab --null --after-context: --before-context: --context: --text --binary-files: --exclude: --exclude-from: --exclude-dir: --include: --recursive --dereference-recursive --regexp: --file: --line-buffered --null-data --binary --version --help'
const RG =
  '-abcEeFHiIlLnNopPqrsSuUvVwxh0 -A: -B: -C: -d: -g: -j: -m: -M: -t: -T: -. --after-context: --before-context: --context: --color: --colors: --column --count --count-matches --crlf --debug --engine: --encoding: --files --files-with-matches --files-without-match --fixed-strings --follow --glob: --heading --help --hidden --iglob: --ignore-case --include-zero --invert-match --json --line-number --line-regexp --max-columns: --max-count: --max-depth: --max-filesize: --multiline --multiline-dotall --no-config --no-filename --no-heading --no-hidden --no-ignore --no-ignore-vcs --no-line-number --no-messages --null --null-data --one-file-system --only-matching --pcre2 --pretty --quiet --regexp: --replace: --smart-case --sort: --sortr: --stats --text --threads: --trim --type: --type-list --type-not: --unrestricted --version --vimgrep --with-filename --word-regexp'

/** Changing the clock; any operand but a format does. */
function settingTime(call: Call): CommandClass[] {
  return call.given.operands.some((word) => !word.prefix.startsWith('+')) ? ['system_change'] : []
}

function showingEnvironment(call: Call): CommandClass[] {
  const { operands } = call.given
  return operands.length > 0 && operands.every((word) => word.static && !isSecretVariable(word.value))
    ? []
    : ['secret_access']
}

/** The second operand is a file that is written. */
function writingSecond(call: Call): CommandClass[] {
  const [, second, ...more] = call.given.operands
  return second === undefined ? [] : [...classesOfWriting(second), ...(more.length > 0 ? (['unknown'] as const) : [])]
}

function jqReads(call: Call): CommandClass[] {
  const filter = call.given.operands[0]
  if (filter === undefined) return []
  if (!filter.static) return ['unknown']
  if (/\b(?:env|input_filename)\b|\$ENV|\$__prog/.test(filter.value)) return ['secret_access']
  return /\b(?:import|include|modulemeta|input_line_number|halt_error|debug)\b/.test(filter.value) ? ['unknown'] : []
}

/** A name server is asked where a word asks for it, or the word's value is known only when the script runs. */
function asking(pattern: RegExp): (call: Call) => CommandClass[] {
  return ({ words }) => (words.some((word) => !word.known || pattern.test(word.value)) ? ['network_egress'] : [])
}

const SHOWS: ProgramTable = {
  ...same('cat head tac nl rev cut paste join comm expand unexpand fold fmt cksum sum b2sum md5sum', PLAIN),
  ...same(
    'sha1sum sha224sum sha256sum sha384sum sha512sum shasum md5 od hexdump strings wc cmp numfmt tsort look',
    PLAIN,
  ),
  ...same('tr column colrm zgrep zcmp diffstat pr', PLAIN),
  getent: tool(['read_only'], { check: asking(/hosts|^net|^-s|^--s/) }),
  lspci: tool(['read_only'], { operands: 'text', check: asking(/^-\w*[qQ]/) }),
  last: tool(['read_only'], { operands: 'text', check: asking(/^-\w*d|^--d/) }),
  who: tool(['read_only'], { operands: 'text', check: asking(/^--l/) }),
  diff: tool(['read_only']),
  ...same('diff3 sdiff colordiff', tool(['read_only', 'unknown'])),
  tail: tool(['read_only'], {
    lenient: true,
    options:
      '-fFqvzr0123456789 -c: -n: -s: --follow? --lines: --bytes: --pid: --quiet --silent --retry --sleep-interval: --verbose --zero-terminated',
  }),
  ...same('ls dir vdir stat du df pwd realpath readlink basename dirname pathchk namei lsblk lsof findmnt', NAMES),
  ...same('whoami id groups uname nproc arch tty uptime free pgrep pidof pstree w users logname', TEXT),
  ...same('echo true false : seq expr factor cal yes sleep tput locale getconf lscpu lsmem lsusb lsmod', TEXT),
  ...same('which whereis type whatis apropos dircolors vmstat iostat mpstat sw_vers vm_stat', TEXT),
  printf: tool(['read_only'], { operands: 'text' }),
  // Without a dash, `e` shows the environment of each process.
  ps: tool(['read_only'], {
    operands: 'text',
    check: ({ words }) =>
      words.some(({ value }) => /^[a-zA-Z]*e|^-\w*E|environ/.test(value)) ? ['secret_access'] : [],
  }),
  ...same(
    'base64 base32',
    tool(['read_only'], {
      options: '-dDi -w: -b: --decode --ignore-garbage --wrap: --break:',
      adds: { '-o: --output:': ['file_write'] },
    }),
  ),
  ...same('test [ [[ ((', tool(['read_only'], { operands: 'text' })),
  tree: tool(['read_only'], {
    options:
      '-adflxLsphugDFqNQinACSJXvtcUr -L: -P: -I: -H: -T: --dirsfirst --noreport --charset: --gitignore --prune --du --filelimit: --matchdirs --ignore-case --sort: --version --help -L',
    adds: { '-o:': ['file_write'] },
    operands: 'names',
  }),
  ...same(
    'date gdate',
    tool(['read_only'], {
      options:
        '-uRj -d: -r: -I? -v: --date: --utc --universal --iso-8601? --rfc-3339: --rfc-email --reference: --version --help',
      adds: { '-s: --set:': ['system_change'], '-f: --file:': ['secret_access', 'unknown'] },
      operands: 'own',
      check: settingTime,
    }),
  ),
  hostname: tool(['read_only'], {
    options: '-AadfIisvy --fqdn --short --long --ip-address --all-fqdns --all-ip-addresses --domain',
    adds: { '-F: --file:': ['system_change'] },
    operands: 'own',
    check: ({ given }) => (given.operands.length > 0 ? ['system_change'] : []),
  }),
  printenv: tool(['read_only'], { options: '-0 --null', operands: 'own', check: showingEnvironment }),
  file: tool(['read_only'], {
    options:
      '-bikLhNprsvz0E -F: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --raw --special-files --version --help',
    adds: {
      '-C --compile': ['file_write'],
      '-m: --magic-file:': ['unknown'],
      '-f: --files-from:': ['secret_access', 'unknown'],
    },
  }),
  uniq: tool(['read_only'], {
    options:
      '-cdDiuz0123456789 -f: -s: -w: --count --repeated --unique --ignore-case --skip-fields: --skip-chars: --check-chars: --zero-terminated --all-repeated? --group?',
    check: writingSecond,
  }),
  xxd: tool(['read_only'], {
    options: '-abeEipruvC -c: -g: -l: -o: -s: -n: -R: -ps -plain -postscript',
    check: writingSecond,
  }),
  sort: tool(['read_only'], {
    options:
      '-bdfghiMnRrVcCmsuz -k: -t: -S: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort --reverse --version-sort --check? --key: --field-separator: --stable --unique --zero-terminated --parallel: --buffer-size: --merge --debug --sort:',
    adds: {
      '-o: --output:': ['file_write'],
      '--compress-program:': ['code_execution', 'unknown'],
      '-T: --temporary-directory:': ['file_write'],
      '--files0-from: --random-source:': ['unknown'],
    },
  }),
  shuf: tool(['read_only'], {
    options: '-erz -i: -n: --echo --head-count: --input-range: --repeat',
    adds: { '-o: --output:': ['file_write'] },
  }),
}

const SEARCHES: ProgramTable = {
  ...same('grep egrep fgrep', tool(['read_only'], { options: GREP, lenient: true, operands: 'own', check: searching })),
  ...same(
    'rg',
    tool(['read_only'], {
      options: RG,
      adds: {
        '--pre: --pre-glob: --hostname-bin:': ['code_execution', 'unknown'],
        '-z --search-zip': ['code_execution'],
        '-f: --file: --ignore-file:': ['unknown'],
      },
      operands: 'own',
      check: searching,
    }),
  ),
  ag: tool(['read_only'], {
    options: '-aiclLnQsSuvw -A: -B: -C: -G: -m: --hidden --nocolor --nogroup --ignore: --literal',
    adds: { '--pager:': ['code_execution'] },
  }),
  ...same(
    'fd fdfind',
    tool(['read_only'], {
      options:
        '-HIusigFalLp0 -d: -t: -e: -E: -S: -c: -j: --hidden --no-ignore --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --follow --full-path --max-depth: --min-depth: --type: --extension: --exclude: --size: --color: --changed-within: --changed-before: --print0 --version --help',
      adds: { '-x: -X: --exec: --exec-batch:': ['code_execution', 'unknown'] },
      operands: 'names',
    }),
  ),
  ...same(
    'jq gojq jaq',
    tool(['read_only'], {
      options:
        '-rcsnejaSCMR0h --raw-output --raw-output0 --compact-output --slurp --null-input --exit-status --join-output --ascii-output --sort-keys --color-output --monochrome-output --raw-input --tab --indent: --arg: --argjson: --args --jsonargs --stream --seq --unbuffered --version --help',
      adds: { '-f: -L: --from-file: --rawfile: --slurpfile: --library-path:': ['unknown'] },
      check: jqReads,
    }),
  ),
  ...same(
    'yq',
    tool(['read_only'], {
      options:
        '-rneNjPMCo: -p: -I: --output-format: --input-format: --unwrapScalar --null-input --prettyPrint --exit-status --version',
      adds: { '-i --inplace --in-place': ['file_write'], '-s: --split-exp:': ['file_write'] },
      check: (call) =>
        /\b(?:env|strenv|load\w*|envsubst|system)\b/.test(call.words.map(({ value }) => value).join(' '))
          ? ['unknown']
          : [],
    }),
  ),
}

/** The first operand is the pattern unless `-e`, `-f` or a listing says otherwise; the others are read. */
function searching(call: Call): CommandClass[] {
  const patterned = hasOption(call, '-e', '-f', '--regexp', '--file', '--files', '--type-list')
  const files = patterned ? call.given.operands : call.given.operands.slice(1)
  const options = call.given.options.flatMap(({ name, value }) =>
    value !== undefined && /^(?:-f|--file)$/.test(name) ? [value] : [],
  )
  return readingAll([...files, ...options])
}

function readingAll(words: Call['given']['operands']): CommandClass[] {
  return words.flatMap((word) => [
    ...secretsIn(word),
    ...(word.known || word.glob || word.text.startsWith('<(') ? [] : (['unknown'] as const)),
  ])
}

/** Pagers run other programs by their own commands and options: only files and plain switches are harmless. */
const PAGERS: ProgramTable = {
  less: tool(['read_only'], {
    options: '-RSNFXinIKMQqsEer --RAW-CONTROL-CHARS --quit-if-one-screen --no-init --chop-long-lines --LINE-NUMBERS',
    adds: { '-o: -O: --log-file: --LOG-FILE:': ['file_write'] },
    check: plusCommands,
  }),
  more: tool(['read_only'], { options: '-dflcpsu -n:', check: plusCommands }),
  ...same(
    'bat batcat',
    tool(['read_only'], {
      options:
        '-pnAf -l: -r: -H: --plain --number --language: --line-range: --style: --color: --theme: --paging: --no-pager --show-all --list-themes --list-languages',
    }),
  ),
  man: tool(['read_only'], {
    options: '-fkwWaI -S: -s: --whatis --apropos --where --path',
    adds: { '-P: -H? --pager: --html?': ['code_execution', 'unknown'] },
    operands: 'text',
    check: ({ given }) => (given.operands.some(({ value }) => value.includes('/')) ? ['unknown'] : []),
  }),
  ...same('info tldr', tool(['unknown'])),
}

function plusCommands(call: Call): CommandClass[] {
  return call.words.some(({ value }) => value.startsWith('+')) ? ['code_execution', 'unknown'] : []
}

export const READING: ProgramTable = { ...SHOWS, ...SEARCHES, ...PAGERS }

import type { CommandClass } from '../classes.js'
import { classesOfWriting, isBeyondUndoing, isElsewhere, isSystemPath, normalPath, secretsIn } from '../paths.js'
import { type Call, hasOption, type ProgramTable, same, tool } from '../rules.js'
import type { Word } from '../types.js'

/** Deleting, by where the path leads: a tree beyond the workspace is gone for good. */
export function classesOfDeleting(target: Word, recursive: boolean): CommandClass[] {
  const path = normalPath(target.value)
  const lost = target.known || target.glob ? isBeyondUndoing(path) : isFatalWhenEmpty(target.value)
  const found: CommandClass[] = ['file_delete']
  if (lost && (recursive || isSystemPath(path) || path.startsWith('/dev/'))) found.push('destructive')
  else if (isElsewhere(path) || !(target.known || target.glob)) found.push('unknown')
  if (isSystemPath(path)) found.push('system_change')
  return found
}

/** `rm -rf "$x/"` deletes the root where x is not set; `rm -rf "$x"` then deletes nothing. */
function isFatalWhenEmpty(value: string): boolean {
  if (value === '') return false
  return isBeyondUndoing(value) && (/^\/(?:\.?\*)?$/.test(normalPath(value)) || !/^\/[^/]+$/.test(normalPath(value)))
}

function deleting(call: Call): CommandClass[] {
  const recursive =
    call.words.some(({ value }) => /^-[a-zA-Z]*[rR]|^--r/.test(value)) ||
    !call.given.operands.every((word) => word.known)
  const root: CommandClass[] = call.words.some(({ value }) => value.startsWith('--no-p')) ? ['destructive'] : []
  return [...root, ...call.given.operands.flatMap((word) => classesOfDeleting(word, recursive))]
}

/** The last operand, or what `-t` names, is written; the others are read, and lost where they are moved. */
function copying(moves: boolean): (call: Call) => CommandClass[] {
  return (call) => {
    const folder = call.given.options.find(({ name }) => name === '-t' || name === '--target-directory')?.value
    const sources = folder === undefined ? call.given.operands.slice(0, -1) : call.given.operands
    const target = folder ?? call.given.operands.at(-1)
    const found = sources.flatMap((word) => [...secretsIn(word), ...hidden(word)])
    const lost = moves && sources.some((word) => isBeyondUndoing(word.value) && word.known)
    const gone = moves && target !== undefined && /^\/dev\//.test(target.value)
    if (lost || gone) found.push('destructive', 'file_delete')
    return [...found, ...(target === undefined ? [] : [...classesOfWriting(target), ...hidden(target)])]
  }
}

function hidden(word: Word): CommandClass[] {
  return word.known || word.glob ? [] : ['unknown']
}

function changingRights(call: Call): CommandClass[] {
  const [mode, ...paths] = call.given.operands
  const recursive = hasOption(call, '-R', '--recursive')
  const found: CommandClass[] = []
  if (mode !== undefined && /^0?[2467]\d{3}$|[ugoa]*[+=][rwxXt]*s/.test(mode.value)) found.push('privilege_escalation')
  for (const path of paths) {
    if (recursive && isBeyondUndoing(path.value) && (path.known || path.glob)) found.push('destructive')
    if (isSystemPath(path.value) || isElsewhere(path.value)) found.push('system_change')
    found.push(...hidden(path))
  }
  return found
}

function copyingBlocks(call: Call): CommandClass[] {
  const found: CommandClass[] = []
  for (const word of call.words) {
    const [, name, value] = /^(\w+)=(.*)$/s.exec(word.value) ?? []
    const target = { ...word, value: value ?? '' }
    if (name === 'of') found.push(...classesOfWriting(target), ...hidden(word))
    else if (name === 'if')
      found.push(...secretsIn(target), ...hidden(word), ...(isDevice(target.value) ? UNKNOWN : []))
    else if (name === undefined || !/^(?:bs|ibs|obs|cbs|count|skip|seek|conv|iflag|oflag|status)$/.test(name))
      found.push('unknown')
  }
  return found
}

const UNKNOWN: CommandClass[] = ['unknown']
const isDevice = (path: string) => path.startsWith('/dev/') && classesOfWriting(plain(path)).length > 0
const plain = (value: string): Word => ({
  ...{ text: value, raw: value, value, prefix: value, variables: [] },
  ...{ static: true, known: true, splits: false, glob: false, substitution: false },
})

const TAR_READS = /^-?(?:[A-Za-z]*t[A-Za-z]*)$/
const TAR_RUNS = /^--(?:to-c|checkpoint-a|us|rsh-c|info-s|new-v|rmt-c)|^-[a-zA-Z]*[IF]/

function archiving(call: Call): CommandClass[] {
  const words = call.words.map((word) => word.value)
  const [first = ''] = words
  const found = call.words.flatMap(secretsIn)
  if (words.some((word) => TAR_RUNS.test(word)) || /^[a-zA-Z]*[IF]/.test(first) || call.given.risky)
    found.push('code_execution', 'unknown')
  if (words.some((word) => /^--(?:remove-files|del|recursive-unlink|unlink-first)/.test(word)))
    found.push('file_delete')
  if (words.some((word) => /^(?:-P|--absolute-names)$/.test(word))) found.push('unknown')
  // tar takes any beginning of a long option, and some write files of their own (--index-file).
  if (words.some((word) => word.startsWith('--') && !TAR_LONG.test(word))) found.push('file_write', 'unknown')
  const remote = words.some((word) => /^-?f?[\w.@-]+:/.test(word))
  if (remote) found.push('network_egress')
  const lists = (TAR_READS.test(first) && !/[cxrudA]/.test(first)) || words.includes('--list')
  const elsewhere = words.some((word, at) => /^(?:-C|--directory)$/.test(words[at - 1] ?? '') && isElsewhere(word))
  if (elsewhere) found.push('unknown')
  return lists ? [...found, 'read_only'] : [...found, 'file_write']
}

const TAR_LONG =
  /^--(?:list|extract|get|create|append|update|file|gzip|gunzip|ungzip|bzip2|xz|zstd|lzma|auto-compress|verbose|directory|strip-components|exclude|wildcards|to-stdout|numeric-owner|full-time|totals|keep-old-files|overwrite|utc|help|version|remove-files|absolute-names)?(?:=.*)?$/

const deletes = tool(['file_delete'], {
  operands: 'own',
  check: deleting,
})

const WRITES: ProgramTable = {
  rm: deletes,
  unlink: deletes,
  rmdir: tool(['file_delete'], { options: '-pv --parents --verbose --ignore-fail-on-non-empty', check: deleting }),
  trash: deletes,
  shred: tool(['file_delete', 'destructive']),
  wipefs: tool(['destructive', 'system_change']),
  mv: tool(['file_write'], {
    options:
      '-finuvbZT -t: -S: --force --interactive --no-clobber --update? --verbose --backup? --target-directory: --no-target-directory',
    check: copying(true),
  }),
  cp: tool(['file_write'], {
    options:
      '-abdfiHlLnPpRrsTuvxZ -t: -S: --archive --force --recursive --no-clobber --preserve? --update? --verbose --parents --reflink? --sparse: --backup? --target-directory: --no-target-directory --dereference --no-dereference --link --symbolic-link',
    check: copying(false),
  }),
  install: tool(['file_write', 'unknown'], { check: copying(false) }),
  ln: tool(['file_write'], {
    options: '-bdfFinPrsTvL -t: -S: --symbolic --force --relative --no-dereference --verbose --target-directory:',
    check: copying(false),
  }),
  mkdir: tool(['file_write'], { options: '-pvZ -m: --parents --mode: --verbose', operands: 'writes' }),
  touch: tool(['file_write'], {
    options: '-acfhm -d: -r: -t: --no-create --date: --reference: --time: --no-dereference',
    operands: 'writes',
  }),
  mkfifo: tool(['file_write'], { operands: 'writes' }),
  mknod: tool(['system_change']),
  truncate: tool(['file_write'], { options: '-co -s: -r: --size: --no-create --reference:', operands: 'writes' }),
  fallocate: tool(['file_write']),
  mktemp: tool(['file_write'], { options: '-dqu -t -p: --directory --suffix: --tmpdir? --quiet', operands: 'text' }),
  split: tool(['file_write'], { options: '-dxen -a: -b: -C: -l: -n: --lines: --bytes: --number: --verbose' }),
  csplit: tool(['file_write']),
  tee: tool([], {
    options: '-ai -p --append --ignore-interrupts --output-error?',
    operands: 'own',
    check: (call) => {
      const written = call.given.operands.flatMap((word) => [...classesOfWriting(word), ...hidden(word)])
      return written.length > 0 ? written : ['read_only']
    },
  }),
  dd: tool([], { operands: 'own', check: (call) => ['file_write', ...copyingBlocks(call)] }),
  chmod: tool(['file_write'], {
    options: '-Rcfv --recursive --verbose --changes --quiet --reference: -x -w -r',
    check: changingRights,
  }),
  ...same('chown chgrp', tool(['file_write', 'system_change'], { check: changingRights })),
  ...same('setfacl chattr setfattr xattr', tool(['file_write', 'system_change'])),
  ...same('setcap', tool(['privilege_escalation', 'system_change'])),
  ...same(
    'patch',
    tool(['file_write'], { options: '-EfNRstu -d: -i: -p: --dry-run --forward --reverse --strip: --input:' }),
  ),
  ...same('dos2unix unix2dos', tool(['file_write'])),
}

const packs = tool(['file_write'], {
  options:
    '-123456789cdfklnNqrtvz0T -S: -b: --keep --decompress --force --stdout --best --fast --recursive --test --list --verbose --quiet',
  check: (call) => (hasOption(call, '-k', '--keep', '-c', '--stdout', '-t', '-l', '--list') ? [] : ['file_delete']),
})

const ARCHIVES: ProgramTable = {
  ...same('tar gtar bsdtar', tool([], { operands: 'own', check: archiving })),
  ...same('gzip gunzip bzip2 bunzip2 xz unxz lzma lz4 compress uncompress zstd unzstd', packs),
  ...same(
    'zcat gzcat bzcat xzcat lzcat zstdcat',
    tool(['read_only'], {
      options: '-cdfklLqtv --stdout --decompress --force --quiet --verbose --list --test --help --version',
      adds: { '-o:': ['file_write'], '--rm': ['file_delete'] },
    }),
  ),
  zip: tool(['file_write'], {
    options: '-rqju9876543210yvX -x: -i: --recurse-paths --quiet --exclude: --symlinks',
    adds: { '-m --move': ['file_delete'], '-d --delete': ['file_delete'] },
    check: (call) =>
      call.words.some(({ value }) => /^-\w*T|^--unz|^-\w*TT/.test(value)) ? ['code_execution', 'unknown'] : [],
  }),
  unzip: tool([], {
    options: '-qjnCaLoxvltpzZ -d: -P:',
    operands: 'own',
    check: (call) => [
      ...call.words.flatMap(secretsIn),
      hasOption(call, '-l', '-v', '-t', '-p', '-z', '-Z') ? 'read_only' : 'file_write',
    ],
  }),
  ...same('zipinfo', tool(['read_only'])),
  ...same('7z 7za 7zr unrar', tool(['file_write', 'unknown'])),
  ...same('cpio ar pax', tool(['file_write', 'unknown'])),
}

export const FILES: ProgramTable = { ...WRITES, ...ARCHIVES }

import type { CommandClass } from './classes.js'
import { mayBeOption, type ParsedOptions, parseOptions } from './options.js'
import { programOf } from './programs.js'
import { classesOfDeleting } from './tables/files.js'
import { ruleOf } from './tables/index.js'
import { SHELLS } from './tables/interpreters.js'
import type { Assignment, Word } from './types.js'
import { plainWord, unknownWord } from './words.js'
import { RUNNERS, type Wrapper, wrapperOf } from './wrappers.js'

/** What a command starts besides itself. */
export interface Unwrapped {
  /** The wrapper's own classes; undefined where the program is none. */
  classes: readonly CommandClass[] | undefined
  inner: { words: readonly Word[]; at: number; guessed: boolean }[]
  /** Text for a shell. */
  scripts: Word[]
  assignments: Assignment[]
  reasons: string[]
}

/** Finds the commands that a command's own words name (PO-04). `words` begins with the program. */
export function unwrap(program: string | undefined, words: readonly Word[]): Unwrapped {
  const out: Unwrapped = { classes: undefined, inner: [], scripts: [], assignments: [], reasons: [] }
  if (program === undefined) return out
  const lower = program.toLowerCase()
  if (lower === 'find' || lower === 'gfind') return unwrapFind(words, out)
  const wrapper = wrapperOf(lower)
  if (wrapper !== undefined) unwrapByTable(lower, wrapper, words, out)
  else if (RUNNERS.some((runner) => runner.test(`${words.map((word) => word.text).join(' ')} `))) guess(words, 2, out)
  else if (EXECUTES.test(lower)) guess(words, 1, out)
  return out
}

const EXECUTES = /^(?:fd|fdfind|gdb|valgrind|perf|tmux|screen)$/

function unwrapByTable(program: string, wrapper: Wrapper, words: readonly Word[], out: Unwrapped): void {
  const args = words.slice(1)
  const given = parseOptions(args, wrapper.options)
  out.classes = [...wrapper.classes]
  for (const { name, value } of given.options) {
    if (wrapper.scripts.includes(name) && value !== undefined) out.scripts.push(scriptOf(program, value))
  }
  // `command -v` and `-V` only look a name up.
  if (program === 'command' && given.options.some(({ name }) => /^-[vV]$/.test(name))) return
  if (given.unknown.length > 0 && !isVersion(args)) {
    out.classes = [...wrapper.classes, 'unknown']
    out.reasons.push(`Kiki does not know what ${given.unknown[0]} means to ${program}`)
    guess(words, 1, out)
  } else if (SHELLS.has(program)) unwrapShell(program, given, args, out)
  else if (program === 'su') withoutInner(program, args, out)
  else unwrapOperands(program, wrapper, given, args, out)
}

function unwrapOperands(
  program: string,
  wrapper: Wrapper,
  given: ParsedOptions,
  args: readonly Word[],
  out: Unwrapped,
): void {
  const place = skipAssignments(wrapper, args, given.places[0] ?? args.length, out) + wrapper.skip
  const inner = args.slice(place)
  if (wrapper.joins) unwrapJoined(program, wrapper, inner, out)
  else if (program === 'env' && out.scripts.length > 0) extendScript(inner, out)
  else if (inner.length === 0) withoutInner(program, args, out)
  else if (out.scripts.length === 0) {
    const risky = args.slice(0, place).some(mayBeOption)
    if (risky) out.reasons.push(`what ${program} starts is known only when the script runs`)
    const words = wrapper.appends ? appended(inner, given.options) : inner
    out.inner.push({ words, at: place + 1, guessed: false })
  }
}

/** `env -S 'sudo -u x' id`: what follows belongs to the text. */
function extendScript(inner: readonly Word[], out: Unwrapped): void {
  out.scripts = out.scripts.map((script) => {
    const words = [script, ...inner]
    const text = words.map((word) => word.text).join(' ')
    return words.every((word) => word.static) ? plainWord(text) : unknownWord(text)
  })
}

function isVersion(args: readonly Word[]): boolean {
  return args.length === 1 && /^--(?:version|help)$/.test(args[0]?.text ?? '')
}

/** `env -S 'text'` splits on blanks and knows `${NAME}`; read as shell text it can only look worse. */
function scriptOf(program: string, value: Word): Word {
  return program === 'env' && /[$\\'"#]/.test(value.text) ? { ...value, static: false } : value
}

function skipAssignments(wrapper: Wrapper, args: readonly Word[], from: number, out: Unwrapped): number {
  let place = from
  for (; wrapper.assigns && place < args.length; place++) {
    const word = args[place]
    const [, name, text] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word?.value ?? '') ?? []
    if (word === undefined || name === undefined) break
    if (!word.known && !word.prefix.includes('=')) out.reasons.push('it sets a variable whose name Kiki cannot see')
    out.assignments.push({ name, text: word.text, value: { ...word, text: text ?? '', value: text ?? '', prefix: '' } })
  }
  return place
}

/** Alone, `env` prints the environment and `sudo -s` opens a shell. */
function withoutInner(program: string, args: readonly Word[], out: Unwrapped): void {
  if (program === 'env' && out.scripts.length === 0 && !isVersion(args)) out.classes = ['secret_access']
  if (
    /^(?:sudo|su|doas|runuser|unshare|nsenter|chroot|systemd-run|script)$/.test(program) &&
    out.scripts.length === 0 &&
    opensShell(program, args)
  )
    out.reasons.push(`${program} opens a shell that runs its input`)
  if (program === 'coproc') out.reasons.push('it runs a command in the background by itself')
}

function opensShell(program: string, args: readonly Word[]): boolean {
  if (/^(?:sudo|doas)$/.test(program)) return args.some((word) => /^-\w*[si]|^--(?:login|shell)/.test(word.value))
  return !isVersion(args)
}

/** With `-c` the first operand is the text, wherever the option stands; without, a file or the input is run. */
function unwrapShell(program: string, given: ParsedOptions, args: readonly Word[], out: Unwrapped): void {
  out.classes = isVersion(args) ? ['read_only'] : ['code_execution']
  if (given.risky) out.reasons.push(`what ${program} runs is known only when the script runs`)
  if (!given.options.some(({ name }) => name === '-c')) return
  const [text] = given.operands
  if (text === undefined) out.reasons.push(`${program} -c without a text`)
  else out.scripts.push(text)
  if (/^(?:fish|csh|tcsh)$/.test(program)) out.reasons.push(`${program} reads another language than bash`)
}

function unwrapJoined(program: string, wrapper: Wrapper, inner: readonly Word[], out: Unwrapped): void {
  if (inner.length === 0) {
    if (program === 'ssh' || program === 'parallel')
      out.reasons.push(`${program} runs the text that it is given as input`)
    return
  }
  const text = inner.map((word) => word.text).join(' ')
  const known = inner.every((word) => word.static) && !wrapper.appends
  out.scripts.push(known ? plainWord(text) : { ...unknownWord(text), text })
}

/** `xargs` appends words that nobody has seen; with `-I X` it puts them where X stands. */
function appended(inner: readonly Word[], options: readonly { name: string; value: Word | undefined }[]): Word[] {
  const replace = options.find(({ name }) => /^(?:-I|-i|-J|--replace)$/.test(name))
  if (replace === undefined) return [...inner, unknownWord('…')]
  const mark = replace.value?.text || '{}'
  return inner.map((word) =>
    word.text.includes(mark)
      ? { ...word, ...REPLACED, prefix: word.prefix.split(mark)[0] ?? '', value: word.value.replaceAll(mark, '') }
      : word,
  )
}

const REPLACED = { static: false, known: false }

const FIND_OPTIONS =
  /^-(?:H|L|P|O\d|maxdepth|mindepth|depth|d|x|mount|xdev|follow|daystart|noleaf|regextype|warn|nowarn|ignore_readdir_race|E|s)$/
const FIND_TESTS =
  /^-(?:name|iname|path|ipath|wholename|iwholename|regex|iregex|lname|ilname|type|xtype|size|empty|newer\w*|anewer|cnewer|[acm]time|[acm]min|used|perm|readable|writable|executable|user|group|uid|gid|nouser|nogroup|inum|samefile|links|fstype|true|false|print|print0|printf|ls|prune|quit|a|and|o|or|not)$/

function unwrapFind(words: readonly Word[], out: Unwrapped): Unwrapped {
  const classes: CommandClass[] = ['read_only']
  const args = words.slice(1)
  for (let at = 0; at < args.length; at++) {
    const word = args[at]
    if (word === undefined) break
    if (/^-(?:exec|execdir|ok|okdir)$/.test(word.value)) {
      const length = args.slice(at + 1).findIndex((one) => one.text === ';' || one.text === '+')
      const inner = args.slice(at + 1, length < 0 ? undefined : at + 1 + length)
      out.inner.push({ words: inner.map(found), at: at + 2, guessed: false })
      if (length < 0) out.reasons.push('find -exec without an end')
      at += inner.length + 1
    } else if (word.value === '-delete') classes.push('file_delete', ...deletedRoots(args))
    else if (/^-f(?:print0?|printf|ls)$/.test(word.value)) classes.push('file_write')
    else if (/^-files0-from$/.test(word.value) || mayBeOption(word)) classes.push('unknown')
    else if (
      word.prefix.startsWith('-') &&
      !FIND_OPTIONS.test(word.value) &&
      !FIND_TESTS.test(word.value) &&
      !isFindValue(args[at - 1])
    )
      classes.push('unknown')
  }
  out.classes = classes
  return out
}

function isFindValue(before: Word | undefined): boolean {
  return (
    before !== undefined && /^-(?:\w*time|\w*min|size|perm|inum|links|uid|gid|name|iname|printf)$/.test(before.value)
  )
}

/** What find puts for `{}`; it begins with one of the paths, so it is no option, but which file it is nobody knows. */
function found(word: Word): Word {
  return word.text.includes('{}')
    ? { ...word, ...REPLACED, prefix: './', value: word.value.replaceAll('{}', '') }
    : word
}

function deletedRoots(args: readonly Word[]): CommandClass[] {
  const roots = args.slice(
    0,
    args.findIndex((word) => word.prefix.startsWith('-')),
  )
  return roots.flatMap((root) => classesOfDeleting(root, true))
}

/** Where the words of a runner end and a command begins is not known: any known program among them counts. */
function guess(words: readonly Word[], from: number, out: Unwrapped): void {
  for (let at = from; at < words.length && out.inner.length < 8; at++) {
    const word = words[at]
    const name = programOf(word)?.name.toLowerCase()
    // `--exec 'rm x'`: a word of several words is a script.
    if (word?.static === true && /^\S+\s/.test(word.value)) out.scripts.push(word)
    if (name === undefined || (ruleOf(name) === undefined && wrapperOf(name) === undefined)) continue
    out.inner.push({ words: words.slice(at), at, guessed: true })
  }
}

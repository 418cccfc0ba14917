import type { Word } from './types.js'

/** The options that a program is known to have. */
export interface OptionSpec {
  /** Letter or `--name` to: `flag` takes nothing, `value` takes the rest or the next word, `attached` only the rest. */
  kinds: ReadonlyMap<string, 'flag' | 'value' | 'attached'>
  /** Everything after the first operand is operand too (wrappers). */
  stops: boolean
}

export interface GivenOption {
  name: string
  value: Word | undefined
}

export interface ParsedOptions {
  options: GivenOption[]
  operands: Word[]
  /** Where each operand stands in the words that were read. */
  places: number[]
  unknown: string[]
  /** A word may turn out to be an option, or several, only when the script runs. */
  risky: boolean
}

/**
 * Reads a line such as `-abc -o: -i? --all --file:`: single letters may be joined; `:` marks a value, `?` a value
 * that is only ever attached. A leading `|` says that options end at the first operand.
 */
export function optionSpec(line: string): OptionSpec {
  const kinds = new Map<string, 'flag' | 'value' | 'attached'>()
  for (const item of line.replace('|', ' ').split(/\s+/).filter(Boolean)) {
    const mark = item.at(-1)
    const kind = mark === ':' ? 'value' : mark === '?' ? 'attached' : 'flag'
    const name = kind === 'flag' ? item : item.slice(0, -1)
    if (name.startsWith('--')) kinds.set(name, kind)
    else for (const letter of name.slice(1)) kinds.set(`-${letter}`, kind)
  }
  return { kinds, stops: line.trimStart().startsWith('|') }
}

/** Reads words as options and operands, the way getopt does, without its abbreviations: those are unknown. */
export function parseOptions(words: readonly Word[], spec: OptionSpec): ParsedOptions {
  const found: ParsedOptions = { options: [], operands: [], places: [], unknown: [], risky: false }
  let ended = false
  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (word === undefined) break
    const isOption = !ended && word.prefix.length > 1 && word.prefix.startsWith('-')
    if (!ended && mayBeOption(word)) found.risky = true
    if (!ended && word.text === '--') ended = true
    else if (!isOption) {
      found.operands.push(word)
      found.places.push(index)
      ended ||= spec.stops
    } else if (word.prefix.startsWith('--')) index += readLong(found, spec, word, words[index + 1])
    else index += readShort(found, spec, word, words[index + 1])
  }
  return found
}

/** Whether what the word becomes can begin with a dash, or be more words than one of which one does. */
export function mayBeOption(word: Word): boolean {
  if (word.known) return false
  if (word.prefix === '' || word.splits) return true
  return word.prefix.startsWith('-') && !/^--[\w-]+=/.test(word.prefix) && !word.static
}

function readLong(found: ParsedOptions, spec: OptionSpec, word: Word, next: Word | undefined): number {
  const equals = word.value.indexOf('=')
  const name = equals < 0 ? word.value : word.value.slice(0, equals)
  const kind = spec.kinds.get(name)
  if (kind === undefined) {
    found.unknown.push(name)
    found.options.push({ name, value: equals < 0 ? undefined : valueFrom(word, equals + 1) })
    return 0
  }
  if (equals >= 0) found.options.push({ name, value: valueFrom(word, equals + 1) })
  else found.options.push({ name, value: kind === 'value' ? next : undefined })
  return equals < 0 && kind === 'value' ? 1 : 0
}

function readShort(found: ParsedOptions, spec: OptionSpec, word: Word, next: Word | undefined): number {
  for (let at = 1; at < word.value.length; at++) {
    const name = `-${word.value[at]}`
    const kind = spec.kinds.get(name)
    if (kind === undefined) {
      const digits = /^-\d+$/.test(word.value) && spec.kinds.has('-0')
      if (!digits) found.unknown.push(name)
      return 0
    }
    const rest = at + 1 < word.value.length ? valueFrom(word, at + 1) : undefined
    if (kind === 'flag') found.options.push({ name, value: undefined })
    else {
      found.options.push({ name, value: rest ?? (kind === 'value' ? next : undefined) })
      return rest === undefined && kind === 'value' ? 1 : 0
    }
  }
  return 0
}

function valueFrom(word: Word, at: number): Word {
  const cut = (text: string) => text.slice(Math.min(at, text.length))
  return { ...word, text: cut(word.text), value: cut(word.value), prefix: cut(word.prefix) }
}

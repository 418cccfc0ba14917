import { refusalOfAssignment } from './assignments.js'
import { parseOptions } from './options.js'
import { canonicalName } from './programs.js'
import { INTERPRETERS, SHELLS } from './tables/interpreters.js'
import type { Word } from './types.js'
import { wrapperOf } from './wrappers.js'

const RESERVED = /^(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|select|function|in|\{|\}|\]\]|!.*)$/
const SHADOWS: Readonly<Record<string, string>> = {
  ...{ source: 'it runs a file in the same shell', '.': 'it runs a file in the same shell' },
  ...{ alias: 'it changes what names stand for', unalias: 'it changes what names stand for' },
  ...{ trap: 'it sets code that runs later', coproc: 'it runs a command in the background by itself' },
  ...{ enable: 'it changes what names stand for', bind: 'it sets code that runs later' },
  ...{ complete: 'it sets code that runs later', hash: 'it changes where programs are looked for' },
}

/** Why a command hides what it starts; empty where its words say it all. `words` begins with the program. */
export function reasonsOfCommand(program: string | undefined, words: readonly Word[]): string[] {
  const [first, ...rest] = words
  if (program === undefined) return [`which program runs is known only when the script runs (${first?.raw ?? ''})`]
  const reasons = [...reasonsOfBuiltin(program, rest), ...reasonsOfInput(program, rest)]
  if (/^[A-Za-z_]\w*\[/.test(first?.raw ?? '')) reasons.push('an assignment to an array')
  if (first !== undefined && first.raw === first.text && RESERVED.test(program)) reasons.push(`a misplaced ${program}`)
  const shadow = SHADOWS[program]
  if (shadow !== undefined && Object.hasOwn(SHADOWS, program)) reasons.push(`${shadow} (${program})`)
  return reasons
}

function reasonsOfBuiltin(program: string, rest: readonly Word[]): string[] {
  const has = (pattern: RegExp) => rest.some((word) => pattern.test(word.value))
  switch (program) {
    case 'printf':
      return has(/^-v/) || rest[0]?.known === false ? ['printf -v evaluates an array index'] : []
    case 'test':
    case '[':
    case '[[':
      return reasonsOfTest(rest)
    case 'declare':
    case 'typeset':
    case 'local':
    case 'export':
    case 'readonly':
      if (has(/^[-+][a-zA-Z]*[aAnifF]/)) return [`${program} makes a name stand for another`]
      if (rest.some((word) => !word.known && !word.prefix.includes('=')))
        return [`${program} of a name that Kiki cannot see`]
      // An index is evaluated, and `(` begins an array even within quotes.
      if (has(/[[(]/)) return [`${program} of an array`]
      return steeringNames(rest)
    case 'let':
      return ['let evaluates an expression']
    case 'jobs':
      return has(/^-\w*x/) || rest.some((word) => !word.known) ? ['jobs -x runs a command'] : []
    case 'read':
    case 'mapfile':
    case 'readarray':
    case 'getopts':
    case 'unset':
      if (program !== 'unset' && has(/^-[a-zA-Z]*C/)) return [`${program} runs a command for each line`]
      if (has(/\[/) || rest.some((word) => !word.known)) return [`${program} evaluates an array index`]
      return steeringNames(rest)
    case 'set':
      return has(/^[-+][a-zA-Z]*[ahkBHP]|^(?:allexport|history|histexpand|keyword)$/)
        ? ['set changes how the script is read']
        : []
    case 'shopt':
      return has(/expand_aliases|extdebug|sourcepath|execfail|compat/) ? ['shopt changes how the script is read'] : []
    case 'wait':
      return has(/^-p/) ? ['wait -p evaluates an array index'] : []
    default:
      return []
  }
}

function reasonsOfTest(rest: readonly Word[]): string[] {
  if (rest.some((word) => /^-[vR]$/.test(word.value))) return ['test -v evaluates an array index']
  const words = rest.filter((word) => !/^\]\]?$/.test(word.raw))
  // What the shell takes for an operator is then in the variable's hands.
  const operator = words.slice(0, words.length === 2 ? 1 : 0)
  return operator.some((word) => !word.known) ||
    words.some((word) => word.splits && !word.known && word.raw.startsWith('$') && rest.at(-1)?.raw !== ']]')
    ? ['a test whose operator Kiki cannot see']
    : []
}

/** `export "PATH=x"` is one word, and yet an assignment. */
function steeringNames(rest: readonly Word[]): string[] {
  return rest.flatMap((word) => {
    const [, name, text] = /^([A-Za-z_]\w*)(?:\+?=(.*))?$/s.exec(word.value) ?? []
    if (name === undefined) return []
    const value = text === undefined ? undefined : { ...word, value: text }
    const reason = refusalOfAssignment({ name, text: word.text, value })
    return reason === undefined ? [] : [reason]
  })
}

/** A shell or interpreter without a file or code of its own runs whatever it is fed. */
function reasonsOfInput(program: string, rest: readonly Word[]): string[] {
  const fed = [`${program} runs the text that it is given as input`]
  const name = canonicalName(program, (one) => SHELLS.has(one) || INTERPRETERS.has(one))
  if (/^(?:at|batch)$/.test(name)) return rest.some((word) => /^-[flrcdV]/.test(word.value)) ? [] : fed
  if (!SHELLS.has(name) && !INTERPRETERS.has(name)) return []
  if (rest.some((word) => word.substitution)) return [`${program} runs what another command prints`]
  if (rest.some((word) => INPUT.test(word.value))) return fed
  if (rest.some((word) => /^(?:-[Vhv]|--version|--help)$/.test(word.value))) return []
  const options = SHELLS.has(name) ? wrapperOf(name)?.options : undefined
  if (options !== undefined) {
    const given = parseOptions(rest, options)
    const told = given.options.some((option) => option.name === '-c') || given.operands.length > 0
    return told && !given.options.some((option) => option.name === '-s') ? [] : fed
  }
  const file = rest.some((word, at) => !word.value.startsWith('-') && !VALUED.test(rest[at - 1]?.value ?? ''))
  const code = rest.some((word) => CODE.test(word.value) || (name === 'php' && word.value === '-r'))
  return file || code ? [] : fed
}

const INPUT = /^(?:-|\/dev\/(?:stdin|fd\/\d+)|\/proc\/(?:self|\d+)\/fd\/\d+)$/
// What interpreters are told to run, and options that are followed by something else than a file to run.
const CODE = /^(?:-[a-zA-Z]*[cemEp]|--(?:eval|print|command|execute|expression|run|test|module)(?:=|$))/
const VALUED = /^-(?:[WXrIM]|-require|-import|-loader|-experimental-loader)$/

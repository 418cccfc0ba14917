import type { CommandClass } from '../classes.js'
import { secretsIn } from '../paths.js'
import type { Call } from '../rules.js'

const RUNS: CommandClass[] = ['code_execution', 'unknown']

/**
 * What a sed program does, read command by command: `e` and `s///e` run programs, `w` and `s///w` write files,
 * `r` reads one. Text that this reader does not follow is `unknown`.
 */
export function classesOfSed(program: string): CommandClass[] {
  let rest = program
  const found: CommandClass[] = []
  while (rest !== '') {
    const before = rest
    rest = rest.replace(/^[\s;}]+/, '')
    rest = skipAddresses(rest).replace(/^\s*!?\s*/, '')
    if (rest === '') break
    const step = readCommand(rest)
    found.push(...step.classes)
    rest = step.rest
    if (rest === before) return ['unknown', ...found]
  }
  return found.length > 0 ? found : ['read_only']
}

const ADDRESS = /^\s*(?:\d+(?:~\d+)?|\$|[+~]\d+|\/(?:\\[\s\S]|\[\^?\]?[^\]]*\]|[^/\\[\n])*\/[IM]*)/

function skipAddresses(text: string): string {
  let rest = text.replace(ADDRESS, '')
  if (rest !== text && rest.startsWith(',')) rest = rest.slice(1).replace(ADDRESS, '')
  return rest
}

interface Step {
  classes: CommandClass[]
  rest: string
}

function readCommand(text: string): Step {
  const letter = text[0] ?? ''
  const rest = text.slice(1)
  if (/[{=dDgGhHnNpPxzF]/.test(letter)) return afterCommand(rest, letter === '{')
  if (/[qQlL]/.test(letter)) return afterCommand(rest.replace(/^\s*\d*/, ''), false)
  if (/[aic]/.test(letter)) return { classes: [], rest: afterText(rest) }
  if (/[btT:]/.test(letter)) return afterLabel(rest, letter === ':')
  if (letter === '#') return { classes: [], rest: rest.replace(/^[^\n]*/, '') }
  if (letter === 's' || letter === 'y') return readSubstitution(rest, letter)
  if (letter === 'w' || letter === 'W') return { classes: writesTo(rest), rest: rest.replace(/^[^\n]*/, '') }
  if (letter === 'r' || letter === 'R') return { classes: ['unknown'], rest: rest.replace(/^[^\n]*/, '') }
  return { classes: RUNS, rest: '' }
}

/** After a command only its end may stand; anything else is not what it seems. */
function afterCommand(rest: string, opens: boolean): Step {
  return opens || /^\s*(?:$|[;}\n#])/.test(rest) ? { classes: [], rest } : { classes: RUNS, rest: '' }
}

/** GNU sed ends a label at a blank and reads on: `:a e id` runs `id`. A `}` belongs to a label that is defined. */
function afterLabel(rest: string, defines: boolean): Step {
  const label = (defines ? /^[ \t]*[\w.-]+[ \t]*(?=$|[;\n])/ : /^[ \t]*[\w.-]*[ \t]*(?=$|[;\n}])/).exec(rest)?.[0]
  return label === undefined ? { classes: RUNS, rest: '' } : { classes: [], rest: rest.slice(label.length) }
}

/** The text of `a`, `i` and `c` goes on over escaped line ends. */
function afterText(rest: string): string {
  return rest.replace(/^(?:\\[\s\S]|[^\\\n])*/, '')
}

function writesTo(rest: string): CommandClass[] {
  return /^\s*\/dev\/(?:stdout|stderr)\s*$/m.test(rest) ? [] : ['file_write']
}

function readSubstitution(text: string, letter: string): Step {
  const delimiter = text[0] ?? ''
  if (delimiter === '' || /[\s\\\w]/.test(delimiter)) return { classes: RUNS, rest: '' }
  let at = 1
  for (let seen = 0; seen < 2; at++) {
    if (at >= text.length) return { classes: RUNS, rest: '' }
    if (text[at] === '\\') at++
    else if (text[at] === delimiter) seen++
    // In a bracket GNU sed and others differ on whether the delimiter ends the pattern.
    else if (text[at] === '[' && seen === 0 && bracketHolds(text.slice(at), delimiter))
      return { classes: RUNS, rest: '' }
  }
  const flags = letter === 's' ? (/^[gpiImM\d]*/.exec(text.slice(at))?.[0] ?? '') : ''
  const rest = text.slice(at + flags.length)
  if (rest.startsWith('w')) return { classes: writesTo(rest.slice(1)), rest: rest.replace(/^[^\n]*/, '') }
  return afterCommand(rest, false)
}

function bracketHolds(text: string, delimiter: string): boolean {
  return /^\[\^?\]?[^\]]*\]/.exec(text)?.[0].includes(delimiter) ?? false
}

/** sed's own options and operands: scripts by `-e` or the first operand, files after it. */
export function classesOfSedCall(call: Call): CommandClass[] {
  const scripts = call.given.options
    .filter(({ name }) => name === '-e' || name === '--expression')
    .map(({ value }) => value)
  const files = scripts.length > 0 ? call.given.operands : call.given.operands.slice(1)
  if (scripts.length === 0) scripts.push(call.given.operands[0])
  const found = scripts.flatMap((script) => {
    if (script === undefined) return []
    return script.static ? classesOfSed(script.value) : RUNS
  })
  const inPlace = call.given.options.some(({ name }) => name === '-i' || name === '--in-place')
  const read = files.flatMap((word) => [...secretsIn(word), ...(word.known || word.glob ? [] : (['unknown'] as const))])
  return [...found, ...read, ...(inPlace ? (['file_write'] as const) : (['read_only'] as const))]
}

import type { CommandClass } from '../classes.js'
import { secretsIn } from '../paths.js'
import { type Call, type ProgramTable, same, tool } from '../rules.js'
import { classesOfSedCall } from './sed.js'

const RUNS: CommandClass[] = ['code_execution', 'unknown']

/**
 * awk runs programs by `system`, pipes and `getline`, and writes by `print >`. Whatever could be one of them
 * counts as one; a comparison outside of a print does not.
 */
export function classesOfAwk(program: string): CommandClass[] {
  const found: CommandClass[] = []
  const code = program.replaceAll('||', ' ')
  if (/\bsystem\b|\||\bgetline\b|@|\bextension\b/.test(code)) found.push(...RUNS)
  if (/\bprintf?\b[^;}\n]*>/.test(code)) found.push('file_write')
  if (/\bENVIRON\b|\bPROCINFO\b/.test(code)) found.push('secret_access')
  if (/\bARG[VC]\b|\\\n/.test(code)) found.push('unknown')
  return found.length > 0 ? found : ['read_only']
}

function classesOfAwkCall(call: Call): CommandClass[] {
  const [program, ...files] = call.given.operands
  if (program === undefined) return ['unknown']
  const read = files.flatMap((word) => [...secretsIn(word), ...(word.known || word.glob ? [] : (['unknown'] as const))])
  return [...(program.static ? classesOfAwk(program.value) : RUNS), ...read]
}

export const STREAMS: ProgramTable = {
  ...same(
    'sed gsed',
    tool([], {
      options:
        '-nErsuz -e: -i? -l: --quiet --silent --expression: --in-place? --regexp-extended --separate --posix --debug --sandbox --null-data --unbuffered --version --help',
      adds: { '-f: --file:': RUNS },
      operands: 'own',
      check: classesOfSedCall,
    }),
  ),
  ...same(
    'awk gawk mawk nawk original-awk',
    tool([], {
      options: '| -F: -v: --field-separator: --assign: --posix --traditional --re-interval --version',
      adds: { '-f: --file: -i: --include: -l: --load: -e: --source: -E: --exec: -d? -o? -p? -D?': RUNS },
      operands: 'own',
      check: classesOfAwkCall,
    }),
  ),
}

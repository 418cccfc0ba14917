// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is shell text
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openShellParser, type ParsedScript, type ShellParser } from '../../../src/policy/commands/parser.js'

// Programs that only write down how they were called, so that bash itself says what a script starts.
const PROGRAMS = ['pa', 'pb', 'pc', 'env', 'timeout']
// One write for each call, so that those of a pipeline do not mix.
const RECORDER = `#!/bin/sh
printf '%s\\n' "\${0##*/}" "$@" '\u0001' >> "$RECORD"
`

let parser: ShellParser
let folder: string
beforeAll(async () => {
  parser = await openShellParser()
  folder = mkdtempSync(join(tmpdir(), 'kiki-bash-'))
  mkdirSync(join(folder, 'bin'))
  for (const name of PROGRAMS) {
    writeFileSync(join(folder, 'bin', name), RECORDER)
    chmodSync(join(folder, 'bin', name), 0o755)
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The command lines that bash really starts for a script, one list of words each. */
function startedBy(script: string): string[][] {
  // What an earlier script left in the background writes into its own folder.
  const work = mkdtempSync(join(folder, 'run-'))
  const record = join(folder, 'bin', `${work.slice(folder.length + 1)}.record`)
  const env = { PATH: join(folder, 'bin'), RECORD: record }
  try {
    execFileSync('/bin/bash', ['--norc', '--noprofile', '-c', script], {
      cwd: work,
      env,
      stdio: 'ignore',
      timeout: 5_000,
    })
  } catch {
    // A script that fails has still started what it started; that is all that is asked here.
  }
  if (!existsSync(record)) return []
  const calls = readFileSync(record, 'utf8')
    .split('\n\u0001\n')
    .filter((call) => call !== '')
  return calls.map((call) => call.split('\n'))
}

/** Commands that bash started and the parser did not see, for a script that it says it has understood. */
function missedIn(parsed: ParsedScript, started: readonly (readonly string[])[]): (readonly string[])[] {
  return started.filter(([program = '', ...args]) => {
    const same = parsed.commands.filter((one) => one.program === program)
    return !same.some((one) => {
      const words = one.words.slice(1)
      return words.some((word) => !word.static) || words.map((word) => word.text).join('\n') === args.join('\n')
    })
  })
}

const PIECES = fc.constantFrom(
  ...[
    'pa',
    'pb',
    'pc',
    'pa x',
    'pb "y"',
    "pc 'z'",
    ' ',
    ' ',
    ' ',
    '\n',
    ';',
    '&&',
    '||',
    '|',
    '&',
    '(',
    ')',
    '{ ',
    '; }',
  ],
  ...[
    '$(',
    '`',
    '"',
    "'",
    '\\',
    '\\\n',
    '\\ ',
    '#',
    ' #',
    '$',
    '$x',
    '${x:-',
    '}',
    '$((',
    '))',
    '[[ ',
    ' ]]',
    '[ ',
    ' ]',
  ],
  ...[
    '<',
    '>',
    '>>',
    '2>&1',
    '<(',
    '<<EOF\n',
    "<<'EOF'\n",
    '\nEOF\n',
    '\nEOF',
    '<<<',
    'f',
    'x=',
    'x=1 ',
    '!',
    '! ',
    '*',
    '{a,b}',
  ],
  ...[
    'if ',
    '; then ',
    '; fi',
    'for i in a; do ',
    '; done',
    'case x in ',
    'x) ',
    ';; esac',
    'while ',
    "$'",
    "\\'",
    '\\x70',
    '\t',
  ],
  ...[
    'eval ',
    'env ',
    'command ',
    'time ',
    'exec ',
    'timeout 5 ',
    'bash -c ',
    'builtin ',
    '-c',
    '=',
    ',',
    '1',
    'then',
    '@',
    '~',
  ],
)

const nested = fc.constantFrom(
  ...[
    '$(pa)',
    '`pb`',
    '"$(pc x)"',
    '$(pa; pb)',
    '${x:-$(pc)}',
    '<(pb)',
    '"`pa`"',
    "'$(pa)'",
    '\\$(pa)',
    '"\\$(pb)"',
    '$((1+1))',
  ],
  ...[
    '{ pa; }',
    '(pb)',
    'pa | pb',
    'pa && pc',
    'if pa; then pb; fi',
    'pa <<EOF\n$(pb)\nEOF\n',
    "pa <<'EOF'\n$(pb)\nEOF\n",
  ],
  ...[
    'pa <<EOF\n`pc`\nEOF\n',
    'pa <<-EOF\n\tx\n\tEOF\npb\n',
    'x=$(pa) pb',
    'pa > f pb',
    '> f pa',
    'pa # pb',
    "pa $'a\\'b' x",
  ],
  ...[
    'case $(pa) in *) pb;; esac',
    'for i in $(pa); do pb; done',
    'pa \\\n pb',
    'p\\\na',
    'p"a"',
    "'p'b",
    '[[ a ]] && pa',
    '[ a ] && pb',
  ],
)

it('FC-P04 FC-P06 FC-P10 what bash starts, the parser has seen, or it has said that it cannot', () => {
  const scripts = fc.oneof(
    fc.array(PIECES, { minLength: 1, maxLength: 9 }),
    fc.array(fc.oneof(PIECES, nested), { minLength: 1, maxLength: 5 }),
  )
  let understood = 0
  fc.assert(
    fc.property(scripts, (pieces) => {
      const script = pieces.join('')
      const parsed = parser.parse(script)
      if (parsed.opaque !== undefined) return
      const started = startedBy(script)
      if (started.length > 0) understood++
      expect(missedIn(parsed, started), script).toEqual([])
    }),
    { numRuns: 400, seed: 20261201 },
  )
  expect(understood).toBeGreaterThan(20)
}, 60_000)

import { expect, it } from 'vitest'
import { scriptForRules } from '../../../src/tools/shell/bash.js'
import { commandEnvironment } from '../../../src/tools/shell/environment.js'
import { shellWords } from '../../../src/tools/shell/shell-words.js'

it('SH-07 on Windows the configured shell runs the script, elsewhere bash, none with start-up files', () => {
  expect(shellWords('x', 'linux', 'powershell')).toEqual(['bash', '--noprofile', '--norc', '-c', 'x'])
  expect(shellWords('x', 'win32', 'git-bash')).toEqual(['bash', '--noprofile', '--norc', '-c', 'x'])
  expect(shellWords('x', 'win32', 'powershell')).toEqual([
    'powershell.exe',
    '-NoLogo',
    '-NoProfile',
    '-NonInteractive',
    '-ExecutionPolicy',
    'Bypass',
    '-Command',
    'x',
  ])
})

it('PO-04 rules see the folder and the variables of a call as part of its script', () => {
  expect(scriptForRules({ command: 'make', cwd: 'a b', env: { LD_PRELOAD: "x'y" } })).toBe(
    "cd 'a b'\nexport LD_PRELOAD='x'\\''y'\nmake",
  )
})

it('SH-06 secrets of the host are passed only by name, and caches stay writable in a sandbox', () => {
  const host = { PATH: '/bin', HOME: '/home/o', OPENAI_API_KEY: 'k', NPM_TOKEN: 't', KIKI_HOME: '/k', TMPDIR: '/big' }
  const of = { host, given: { MINE: '1' }, terminal: false, operationId: 'op_1' }
  const open = commandEnvironment({ ...of, pass: ['NPM_TOKEN', 'MISSING'], writable: undefined })
  expect(open).toMatchObject({
    PATH: '/bin',
    NPM_TOKEN: 't',
    MINE: '1',
    CI: '1',
    GIT_TERMINAL_PROMPT: '0',
    TMPDIR: '/big',
    KIKI_OPERATION_ID: 'op_1',
  })
  expect(Object.keys(open)).not.toEqual(expect.arrayContaining(['OPENAI_API_KEY']))
  expect(open.KIKI_HOME).toBeUndefined()
  const confined = commandEnvironment({ ...of, pass: [], writable: ['/w'] })
  expect(confined).toMatchObject({ TMPDIR: '/tmp', npm_config_cache: '/tmp/.cache/npm', XDG_CACHE_HOME: '/tmp/.cache' })
  expect(confined.NPM_TOKEN).toBeUndefined()
})

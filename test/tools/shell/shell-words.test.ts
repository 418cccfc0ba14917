import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { scriptForRules } from '../../../src/tools/shell/bash.js'
import { commandEnvironment } from '../../../src/tools/shell/environment.js'
import { shellWords } from '../../../src/tools/shell/shell-words.js'

const script = 'echo "a b"; exit 3'

it('SH-07 Linux and macOS: bash without start-up files, whatever is configured for Windows', () => {
  for (const platform of ['linux', 'darwin'] as const) {
    for (const windows of ['powershell', 'git-bash'] as const) {
      expect(shellWords(script, platform, windows)).toEqual(['bash', '--noprofile', '--norc', '-c', script])
    }
  }
})

it('SH-07 Windows: Git Bash where it is configured', () => {
  expect(shellWords(script, 'win32', 'git-bash')).toEqual(['bash', '--noprofile', '--norc', '-c', script])
})

it('SH-07 Windows: PowerShell otherwise, without a profile, in UTF-8, and with the exit code of its last program', () => {
  const words = shellWords('npm test # all\n', 'win32', 'powershell')
  expect(words.slice(0, -1).join(' ')).toBe(
    'powershell.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -OutputFormat Text -Command',
  )
  expect(words.at(-1)).toBe(
    'try { [Console]::OutputEncoding = [System.Text.UTF8Encoding]::new($false) } catch { }; ' +
      'npm test # all\n\nif (-not $?) { if ($LASTEXITCODE) { exit $LASTEXITCODE } else { exit 1 } }',
  )
})

it('SH-07 the same words run here, and give the script its own exit code', () => {
  const [file, ...words] = shellWords(script, process.platform, 'powershell')
  const { stdout, status } = spawnSync(file, words, { encoding: 'utf8' })
  expect({ stdout, status }).toEqual({ stdout: 'a b\n', status: 3 })
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

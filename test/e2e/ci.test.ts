import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ROOT } from '../helpers/source-copy.js'

/** What `.ci/run` needs of the system itself; everything else on its PATH is a stand-in that writes down its call. */
const SYSTEM = 'bash dirname grep tee mktemp rm cat node'.split(' ')
const PROGRAMS = 'bwrap chromium git strace python3 make g++ lowntfs-3g'.split(' ')
let base: string
let bin: string

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'kiki-ci-'))
  bin = join(base, 'bin')
  mkdirSync(bin)
  cpSync(join(ROOT, '.ci'), join(base, 'project/.ci'), { recursive: true })
  for (const program of SYSTEM) symlinkSync(which(program), join(bin, program))
  for (const program of PROGRAMS) standIn(program, '')
  standIn('apt-get', '')
  npm({ passed: 12, failed: 0, skipped: 0 })
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

it('PK-04 with everything there it installs nothing, runs what the README says, and ends with the counts', () => {
  const { status, lines, calls } = ci()
  expect(calls).toEqual([
    'npm ci',
    expect.stringMatching(/^npm test -- --reporter=default --reporter=json --outputFile=\S+$/),
    'npm run check',
    'npm run demo',
  ])
  expect(lines.at(-1)).toBe('12 passed, 0 failed, 0 skipped')
  expect(status).toBe(0)
})

it('PK-04 it installs the Debian packages of programs that are missing, and those only', () => {
  rmSync(join(bin, 'bwrap'))
  rmSync(join(bin, 'strace'))
  const install = `case $1 in install) for p in bwrap strace; do printf '#!/bin/sh\\n' > ${bin}/$p; chmod +x ${bin}/$p; done;; esac`
  symlinkSync(which('chmod'), join(bin, 'chmod'))
  standIn('apt-get', install)
  const { status, calls } = ci()
  expect(calls.slice(0, 2)).toEqual([
    'apt-get update',
    'apt-get install --yes --no-install-recommends ca-certificates bubblewrap strace',
  ])
  expect(status).toBe(0)
})

it('PK-04 a package that cannot be had, and a test that skips for want of one, fail it', () => {
  rmSync(join(bin, 'chromium'))
  const without = ci()
  expect(without.errors).toContain('still missing: chromium')
  expect(without.status).toBe(1)
  standIn('chromium', '')
  npm({ passed: 11, failed: 0, skipped: 1, says: 'skipped: pages in a browser, because there is no /usr/bin/chromium' })
  const skipped = ci()
  expect(skipped.lines.slice(-2)).toEqual(['not run: a test', '11 passed, 0 failed, 1 skipped'])
  expect(skipped.status).toBe(1)
})

it('PK-04 a failed test, a failed check, a failed demo, and tests that never ran fail it', () => {
  npm({ passed: 11, failed: 1, skipped: 0, fails: 'test' })
  const failed = ci()
  expect(failed.lines.at(-1)).toBe('11 passed, 1 failed, 0 skipped')
  expect(failed.status).toBe(1)
  for (const fails of ['check', 'demo']) {
    npm({ passed: 12, failed: 0, skipped: 0, fails })
    expect(ci()).toMatchObject({ status: 1, calls: { length: 4 } })
  }
  npm({ passed: 0, failed: 0, skipped: 0, fails: 'ci' })
  const nothing = ci()
  expect(nothing.calls).toEqual(['npm ci', 'npm run check', 'npm run demo'])
  expect(nothing.lines.at(-1)).toBe('0 passed, 0 failed, 0 skipped')
  expect(nothing.status).toBe(1)
})

/** Runs it in its small world; `calls` are those of the stand-ins, in order. */
function ci() {
  const log = join(base, 'calls')
  rmSync(log, { force: true })
  const { status, stdout, stderr } = spawnSync(join(base, 'project/.ci/run'), {
    cwd: base,
    env: { PATH: bin, TMPDIR: base },
    encoding: 'utf8',
  })
  const calls = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  return { status, lines: stdout.trimEnd().split('\n'), errors: stderr, calls }
}

function standIn(program: string, does: string): void {
  const file = join(bin, program)
  writeFileSync(file, `#!/bin/sh\necho "${program} $*" >> "${join(base, 'calls')}"\n${does}\n`)
  chmodSync(file, 0o755)
}

/** An npm whose `test` writes a report with these counts, and which fails at one of its jobs. */
function npm(run: { passed: number; failed: number; skipped: number; says?: string; fails?: string }): void {
  const report = {
    numPassedTests: run.passed,
    numFailedTests: run.failed,
    numPendingTests: run.skipped,
    numTodoTests: 0,
    testResults: [{ assertionResults: run.skipped > 0 ? [{ fullName: 'a test', status: 'skipped' }] : [] }],
  }
  standIn(
    'npm',
    `case "$1 $2" in
  "ci ") exit ${run.fails === 'ci' ? 1 : 0};;
  "test --")
    for last; do :; done
    echo '${JSON.stringify(report)}' > "\${last#--outputFile=}"
    echo '${run.says ?? ''}'
    exit ${run.fails === 'test' ? 1 : 0};;
  "run ${run.fails}") exit 1;;
esac`,
  )
}

function which(program: string): string {
  if (program === 'node') return process.execPath
  const found = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, program)))
  if (found === undefined) throw new Error(`This test needs ${program}.`)
  return join(found, program)
}

import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '../../src/lib/log.js'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kiki-log-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

it('GU-60 a log file is the owner’s alone, and secrets never reach it at any depth or level', async () => {
  const file = join(dir, 'kiki.log')
  const log = createLog({ file }, 'debug')
  const canary = 'CANARY-7f3a'
  log.info({ token: canary, headers: { Authorization: canary, Cookie: [canary] } }, 'one')
  log.debug({ a: { b: { access_token: canary, clientSecret: { value: canary } } }, list: [{ apiKey: canary }] }, 'two')
  log.error({ password: canary, code: canary, credential: canary, error_code: 'kept' }, 'three')
  await log.close()
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain(canary)
  expect(text).toContain('"error_code":"kept"')
  expect(text.match(/"msg":"(one|two|three)"/g)).toHaveLength(3)
  expect(lstatSync(file).mode & 0o777).toBe(0o600)
})

it('values that refer to themselves, and errors, can be logged', async () => {
  const file = join(dir, 'kiki.log')
  const log = createLog({ file }, 'info')
  const round: Record<string, unknown> = {}
  round.self = round
  log.info({ round, error: new Error('told') }, 'round')
  await log.close()
  expect(readFileSync(file, 'utf8')).toContain('Error: told')
})

it('who logs after the log was closed costs nobody anything', async () => {
  const file = join(dir, 'kiki.log')
  const log = createLog({ file }, 'info')
  log.info({}, 'before')
  await log.close()
  log.error({}, 'after')
  expect(readFileSync(file, 'utf8')).toMatch(/"msg":"before"}\n$/)
})

it('a log that cannot be opened is an error that says what to do', () => {
  mkdirSync(join(dir, 'kiki.log'))
  expect(() => createLog({ file: join(dir, 'kiki.log') }, 'info')).toThrow('cannot be opened')
})

const root = process.getuid?.() === 0
it.skipIf(!root)('a full disk costs lines of the log, never the process; later lines are written again', async () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir])
  try {
    const file = join(dir, 'kiki.log')
    const log = createLog({ file }, 'info')
    for (let i = 0; i < 25; i++) log.info({ filler: 'x'.repeat(4000) }, 'filler')
    await vi.waitFor(() => expect(statfsSync(dir).bavail).toBe(0))
    truncateSync(file)
    log.info({}, 'after')
    await log.close()
    expect(readFileSync(file, 'utf8')).toContain('"msg":"after"')
  } finally {
    execFileSync('umount', [dir])
  }
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'

const DEMO = fileURLToPath(new URL('../../scripts/demo.mjs', import.meta.url))
let temporary: string

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'kiki-demo-test-'))
})
afterEach(() => rmSync(temporary, { recursive: true, force: true }))

/** Runs the demo as `npm run demo` does, once the program is built. */
async function demo(env: Record<string, string> = {}) {
  const began = performance.now()
  const child = spawn(process.execPath, [DEMO], {
    env: { ...process.env, TMPDIR: temporary, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { out, err, code: code as number | null, ms: performance.now() - began }
}

it('PK-02 the demo lists, resumes, reads, searches, edits, repeats, is refused, asks, is denied, undone, runs commands, is revoked, and leaves nothing', async () => {
  const { out, err, code, ms } = await demo()
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(ms).toBeLessThan(30_000)
  const steps = [...out.matchAll(/^\d+\. (.+?) {2}\(/gm)].map(([, title]) => title)
  expect(steps).toEqual([
    'A small project to work on',
    'You start the host',
    'You authorise one client',
    'You give it one folder',
    'The assistant connects and looks around',
    'It resumes that session',
    'It reads',
    'It searches',
    'It changes one line, under a key',
    'The answer got lost, so it asks again',
    'It uses that key for something else',
    'It tries a file outside of its folder',
    'You look at the record',
    'You want to be asked from now on',
    'You open a terminal for it',
    'You approve it, once',
    'You deny another, with a word to the assistant',
    'You change your mind about the cake',
    'Another assistant may run commands',
    'It runs a command',
    'It starts a server, and asks it',
    'You see it, and end it',
    'You have seen enough',
  ])
  expect(out).toContain('| 4\tTea, green: 3.20')
  expect(out).toContain('| +Tea, green: 3.50')
  expect(out).toContain('idempotency_conflict: ')
  expect(out).toContain('path_denied: ')
  expect(out).toContain('| +Cake: 4.20')
  expect(out).toContain('approval_denied: ')
  expect(out).toContain('answers the next command: Welcome')
  expect(out).toMatch(/\| kiki mcp: .*revoked/)
  expect(readdirSync(temporary)).toEqual([])
  const pid = Number(/it runs as process (\d+)/.exec(out)?.[1])
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

it('PK-02 where a step does not come out as told, the demo says which, fails, and clears up all the same', async () => {
  const { out, err, code } = await demo({ PATH: '/nowhere' })
  expect(code).toBe(1)
  expect(out).not.toContain('That was all of it')
  expect(err).toMatch(/^\nThe demo failed at step 1\. .*git/)
  expect(readdirSync(temporary)).toEqual([])
})

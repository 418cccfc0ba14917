import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/lib/log.js'
import { createProcesses } from '../../src/processes/processes.js'
import { buildLauncher } from './build-launcher.js'
import { createHarness, expectGone, type Harness, isGone, launcherPid, never } from './harness.js'

let built: ReturnType<typeof buildLauncher>
let harness: Harness

beforeAll(() => {
  built = buildLauncher()
})
afterAll(() => built.remove())
beforeEach(() => {
  harness = createHarness(built.launcherPath)
})
afterEach(() => harness.close())

describe('run', () => {
  it('gives output whole and in order, the exit code and standard error', async () => {
    const chunks: Buffer[] = []
    const result = await harness.processes.run({
      argv: ['/bin/sh', '-c', 'seq 1 200000; echo oops >&2; exit 7'],
      cwd: '/',
      signal: never(),
      onStdout: (chunk) => void chunks.push(chunk),
    })
    expect(result).toEqual({ exitCode: 7, signal: null, stderr: 'oops\n', stopped: false })
    const lines = Buffer.concat(chunks).toString().trimEnd().split('\n')
    expect(lines.length).toBe(200_000)
    expect(lines.at(-1)).toBe('200000')
  })

  it('gives children blocking output and an empty standard input', async () => {
    // A child on a non-blocking pipe would fail with EAGAIN once the host is slower than it.
    const { out, exitCode } = await harness.output([
      '/bin/sh',
      '-c',
      'head -c 8000000 /dev/zero | tr "\\0" x; cat; echo end',
    ])
    expect(exitCode).toBe(0)
    expect(out.length).toBe(8_000_000 + 'end\n'.length)
  })

  it('keeps at most 64 KiB of standard error', async () => {
    const script = 'head -c 300000 /dev/zero | tr "\\0" e >&2'
    const result = await harness.processes.run({
      argv: ['/bin/sh', '-c', script],
      cwd: '/',
      signal: never(),
      onStdout: () => true,
    })
    expect(result.stderr.length).toBe(64 * 1024)
  })

  it('runs many at once, each with its own output', async () => {
    const all = await Promise.all(Array.from({ length: 40 }, (_, i) => harness.output(['/bin/echo', `n${i}`])))
    expect(all.map((one) => one.out)).toEqual(Array.from({ length: 40 }, (_, i) => `n${i}\n`))
  })

  it('loses nothing while the host is busy: the news of an end may come before the output', async () => {
    await harness.output(['/bin/true'])
    for (let round = 0; round < 5; round++) {
      const run = harness.output(['/bin/echo', 'hello'])
      await new Promise((resolve) => setImmediate(resolve))
      const until = performance.now() + 60
      while (performance.now() < until);
      expect((await run).out).toBe('hello\n')
    }
  })

  it('stops a child once enough was seen', async () => {
    let seen = 0
    const result = await harness.processes.run({
      argv: ['/usr/bin/yes'],
      cwd: '/',
      signal: never(),
      onStdout(chunk) {
        seen += chunk.length
        return seen < 100_000
      },
    })
    expect(result.stopped).toBe(true)
    expect(result.signal).toBe('SIGTERM')
  })

  it('ends the child and passes on what onStdout throws', async () => {
    const run = harness.processes.run({
      argv: ['/usr/bin/yes'],
      cwd: '/',
      signal: never(),
      onStdout() {
        throw new Error('cannot read this')
      },
    })
    await expect(run).rejects.toThrow('cannot read this')
  })

  it('TQ-04 a missing program, a missing folder and a file that may not be run are told apart', async () => {
    await expect(harness.output(['no-such-program'])).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is no program "no-such-program" to run.',
    })
    await expect(harness.output(['/bin/true'], { cwd: '/no/such/folder' })).rejects.toMatchObject({
      code: 'not_found',
      message: 'The folder "/no/such/folder" to run in is not there.',
    })
    const file = path.join(harness.dir, 'plain')
    writeFileSync(file, 'x', { mode: 0o600 })
    await expect(harness.output([file])).rejects.toMatchObject({ code: 'permission_denied' })
  })

  it('refuses arguments that the system cannot hold, and goes on', async () => {
    await expect(harness.output(['/bin/echo', 'x'.repeat(3_000_000)])).rejects.toMatchObject({ code: 'too_large' })
    expect((await harness.output(['/bin/echo', 'still here'])).out).toBe('still here\n')
  })
})

describe('environment', () => {
  it('GU-61 children get the allow-list, whatever the host has', async () => {
    await harness.close()
    harness = createHarness(built.launcherPath, {
      PATH: process.env.PATH,
      LC_TIME: 'de_DE.UTF-8',
      KIKI_OWNER_TOKEN: 'secret',
      AWS_SECRET_ACCESS_KEY: 'secret',
      NODE_OPTIONS: '--title=x',
      LD_PRELOAD: '/nothing.so',
    })
    const { out } = await harness.output(['/usr/bin/env'])
    expect(out.trim().split('\n').sort()).toEqual(['LC_TIME=de_DE.UTF-8', `PATH=${process.env.PATH}`])
    // Nor does the launcher itself, which other programs of this user could look into.
    const launcher = readFileSync(`/proc/${launcherPid(built.launcherPath)}/environ`, 'latin1')
    expect(launcher).not.toContain('secret')
  })

  it('GU-61 an environment that is handed in is the whole environment, held or not', async () => {
    const env = { PATH: '/usr/bin:/bin', ONLY: 'this' }
    expect((await harness.output(['/usr/bin/env'], { env })).out.trim().split('\n').sort()).toEqual([
      'ONLY=this',
      'PATH=/usr/bin:/bin',
    ])
    const child = await harness.processes.spawn({
      argv: ['env'],
      cwd: '/',
      env,
      signal: never(),
      beforeExec: () => undefined,
    })
    const chunks: Buffer[] = []
    for await (const chunk of child.stdout) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).toString().trim().split('\n').sort()).toEqual(['ONLY=this', 'PATH=/usr/bin:/bin'])
  })
})

describe('ending', () => {
  it('GU-21 SR-03 an abort ends the whole group, also members that ignore SIGTERM, within 2 s', async () => {
    const controller = new AbortController()
    const pids: number[] = []
    const script = 'trap "" TERM; sh -c "trap \\"\\" TERM; sleep 300" & echo $$ $!; wait'
    const run = harness.processes.run({
      argv: ['/bin/sh', '-c', script],
      cwd: '/',
      signal: controller.signal,
      onStdout(chunk) {
        pids.push(...chunk.toString().trim().split(' ').map(Number))
        controller.abort()
        return true
      },
    })
    const before = performance.now()
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(performance.now() - before).toBeLessThan(5000)
    expect(pids.length).toBe(2)
    expect(pids.every(isGone)).toBe(true)
  })

  it('a signal that was aborted before starts nothing', async () => {
    const signal = AbortSignal.abort()
    const touched = path.join(harness.dir, 'touched')
    await expect(harness.output(['/usr/bin/touch', touched], { signal })).rejects.toMatchObject({ code: 'cancelled' })
    expect(existsSync(touched)).toBe(false)
  })

  it('children that the leader left behind are ended, and their open output does not hold the answer', async () => {
    const { out } = await harness.output(['/bin/sh', '-c', 'sleep 300 & echo $!'])
    expect(isGone(Number(out))).toBe(true)
  })

  it('close ends every child and the launcher, and leaves no socket', async () => {
    let pid = 0
    const run = harness.processes.run({
      argv: ['/bin/sh', '-c', 'echo $$; exec sleep 300'],
      cwd: '/',
      signal: never(),
      onStdout(chunk) {
        pid = Number(chunk.toString())
        launcher = launcherPid(built.launcherPath)
        void harness.processes.close()
        return true
      },
    })
    let launcher = 0
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    await expectGone(pid, launcher)
    expect(readdirSync(path.join(harness.dir, 'run'))).toEqual([])
    await expect(harness.output(['/bin/true'])).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('the launcher', () => {
  it('killed with its children running: they fail with internal_error, are ended, and the next run has a new launcher', async () => {
    let pid = 0
    let launcher = 0
    const run = harness.processes.run({
      argv: ['/bin/sh', '-c', 'echo $$; exec sleep 300'],
      cwd: '/',
      signal: never(),
      onStdout(chunk) {
        pid = Number(chunk.toString())
        launcher = launcherPid(built.launcherPath)
        process.kill(launcher, 'SIGKILL')
        return true
      },
    })
    await expect(run).rejects.toMatchObject({ code: 'internal_error', hint: expect.stringContaining('Call again') })
    await expectGone(pid)
    expect((await harness.output(['/bin/echo', 'again'])).out).toBe('again\n')
    expect(launcherPid(built.launcherPath)).not.toBe(launcher)
  })

  it('SR-03 stopped dead, it does not keep a child from being ended within 2 s', async () => {
    const controller = new AbortController()
    let pid = 0
    let launcher = 0
    const run = harness.processes.run({
      argv: ['/bin/sh', '-c', 'echo $$; exec sleep 300'],
      cwd: '/',
      signal: controller.signal,
      onStdout(chunk) {
        pid = Number(chunk.toString())
        launcher = launcherPid(built.launcherPath)
        process.kill(launcher, 'SIGSTOP')
        controller.abort()
        return true
      },
    })
    const before = performance.now()
    await expect(run).rejects.toMatchObject({ code: 'outcome_unknown' })
    expect(performance.now() - before).toBeLessThan(5000)
    expect(isGone(pid)).toBe(true)
    process.kill(launcher, 'SIGCONT')
  })

  it('talks through a folder that only this user may enter, also where its path is long', async () => {
    const dir = path.join(harness.dir, 'd'.repeat(150))
    const processes = createProcesses({ dir, log: silentLog, env: {}, launcherPath: built.launcherPath })
    try {
      const result = await processes.run({ argv: ['/bin/true'], cwd: '/', signal: never(), onStdout: () => true })
      expect(result.exitCode).toBe(0)
      const folder = path.join(dir, readdirSync(dir)[0] ?? '')
      expect(statSync(dir).mode & 0o777).toBe(0o700)
      expect(statSync(folder).mode & 0o777).toBe(0o700)
    } finally {
      await processes.close()
    }
  })

  it('TQ-04 one that cannot start is an error at once, not a hang', async () => {
    mkdirSync(path.join(harness.dir, 'x'))
    const processes = createProcesses({
      dir: path.join(harness.dir, 'x'),
      log: silentLog,
      env: {},
      launcherPath: '/no/launcher.js',
    })
    const run = processes.run({ argv: ['/bin/true'], cwd: '/', signal: never(), onStdout: () => true })
    await expect(run).rejects.toMatchObject({ code: 'internal_error' })
    await processes.close()
  })
})

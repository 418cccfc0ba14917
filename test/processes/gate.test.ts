import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { endIfSame, type StartRecord, startTimeOf } from '../../src/processes/start-record.js'
import { buildLauncher } from './build-launcher.js'
import { createHarness, expectGone, type Harness, isGone, launcherPid, never } from './harness.js'

let built: ReturnType<typeof buildLauncher>
let harness: Harness
const hosts: { kill(): void }[] = []

beforeAll(() => {
  built = buildLauncher()
})
afterAll(() => built.remove())
beforeEach(() => {
  harness = createHarness(built.launcherPath)
})
afterEach(async () => {
  for (const host of hosts.splice(0)) host.kill()
  await harness.close()
})

/** A separate host process, which can be killed; gives the first fact that it says. */
async function startHost(mode: 'held' | 'running') {
  const dir = mkdtempSync(path.join(tmpdir(), 'kiki-host-'))
  const fixture = path.resolve(import.meta.dirname, '../fixtures/process-host.mjs')
  const host = spawn(process.execPath, [fixture, built.processesPath, dir, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  hosts.push({
    kill: () => {
      host.kill('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  })
  const line = await new Promise<string>((resolve) => createInterface(host.stdout).once('line', resolve))
  const fact = JSON.parse(line) as StartRecord & { inner?: number }
  const launcher = launcherPid(built.launcherPath, host.pid)
  return { host, dir, fact, launcher }
}

it('GU-02 a held child has its final pid, group and start time before the program is executed', async () => {
  const touched = path.join(harness.dir, 'touched')
  let record: StartRecord | undefined
  const child = await harness.processes.spawn({
    argv: ['sh', '-c', `echo $$ > "${touched}"; exec sleep 300`],
    cwd: '/',
    signal: never(),
    async beforeExec(start) {
      record = start
      expect(startTimeOf(start.pid)).toBe(start.startTime)
      const stat = readFileSync(`/proc/${start.pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ')
      expect(Number(stat[2])).toBe(start.pid)
      // Still the gate, not the program.
      expect(readlinkSync(`/proc/${start.pid}/exe`)).toBe(realpathSync('/bin/sh'))
      expect(existsSync(touched)).toBe(false)
    },
  })
  expect(child.pid).toBe(record?.pid)
  await expect.poll(() => existsSync(touched) && readFileSync(touched, 'utf8')).toBe(`${child.pid}\n`)
  expect(startTimeOf(child.pid)).toBe(record?.startTime)
  child.end()
  expect(await child.exited).toEqual({ exitCode: null, signal: 'SIGTERM' })
})

it('GU-02 where the record cannot be kept, the program never runs', async () => {
  const touched = path.join(harness.dir, 'touched')
  let pid = 0
  const spawning = harness.processes.spawn({
    argv: ['/usr/bin/touch', touched],
    cwd: '/',
    signal: never(),
    beforeExec(start) {
      pid = start.pid
      throw new Error('disk full')
    },
  })
  await expect(spawning).rejects.toThrow('disk full')
  expect(isGone(pid)).toBe(true)
  expect(existsSync(touched)).toBe(false)
})

it('GU-02 GU-21 cancelled while it is held, the program never runs', async () => {
  const controller = new AbortController()
  const touched = path.join(harness.dir, 'touched')
  const spawning = harness.processes.spawn({
    argv: ['/usr/bin/touch', touched],
    cwd: '/',
    signal: controller.signal,
    beforeExec: () => controller.abort(),
  })
  await expect(spawning).rejects.toMatchObject({ code: 'cancelled' })
  expect(existsSync(touched)).toBe(false)
})

it('GU-02 a host killed while it holds a child: the program never runs', async () => {
  const { host, dir, fact, launcher } = await startHost('held')
  host.kill('SIGKILL')
  await expectGone(fact.pid, launcher)
  expect(existsSync(path.join(dir, 'ran'))).toBe(false)
})

it('GU-02 a launcher killed while it holds a child: the program never runs', async () => {
  const { dir, fact, launcher } = await startHost('held')
  process.kill(launcher, 'SIGKILL')
  await expectGone(fact.pid)
  expect(existsSync(path.join(dir, 'ran'))).toBe(false)
})

it('a host killed with -9 takes its launcher and every child with it', async () => {
  const { host, dir, fact, launcher } = await startHost('running')
  expect(existsSync(path.join(dir, 'ran'))).toBe(true)
  host.kill('SIGKILL')
  await expectGone(fact.pid, fact.inner ?? 0, launcher)
})

it('a held program that is missing is not found, and its own exit code 127 is its own', async () => {
  const options = { cwd: '/', signal: never(), beforeExec: () => undefined }
  await expect(harness.processes.spawn({ argv: ['no-such-program'], ...options })).rejects.toMatchObject({
    code: 'not_found',
  })
  const child = await harness.processes.spawn({ argv: ['sh', '-c', 'exit 127'], ...options })
  expect(await child.exited).toEqual({ exitCode: 127, signal: null })
})

it('held arguments stay what they are', async () => {
  const odd = ['-n', 'a b', '$HOME', '`id`', '', "it's", 'new\nline']
  const child = await harness.processes.spawn({
    argv: [process.execPath, '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--', ...odd],
    cwd: '/',
    signal: never(),
    beforeExec: () => undefined,
  })
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer)
  expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual(odd)
})

it('GU-05 a recorded group is ended only if both pid and start time match', async () => {
  const child = await harness.processes.spawn({ argv: ['sleep', '300'], cwd: '/', signal: never() })
  const startTime = child.startTime ?? ''
  expect(startTime).toMatch(/^\d+@[0-9a-f-]{36}$/)
  const [ticks, boot] = startTime.split('@')
  expect(endIfSame({ pid: child.pid, startTime: `${Number(ticks) + 1}@${boot}` })).toBe(false)
  expect(endIfSame({ pid: child.pid, startTime: `${ticks}@another-boot` })).toBe(false)
  expect(endIfSame({ pid: process.pid, startTime })).toBe(false)
  expect(isGone(child.pid)).toBe(false)
  expect(endIfSame({ pid: child.pid, startTime })).toBe(true)
  expect(await child.exited).toEqual({ exitCode: null, signal: 'SIGKILL' })
  expect(endIfSame({ pid: child.pid, startTime })).toBe(false)
})

it('GU-05 the start time is field 22 also where the program is named like a trap', async () => {
  const child = await harness.processes.spawn({
    argv: ['sh', '-c', 'cp "$(command -v sleep)" "$0" && exec "$0" 300', path.join(harness.dir, 'a) S 1 (b')],
    cwd: '/',
    signal: never(),
  })
  await expect.poll(() => readFileSync(`/proc/${child.pid}/stat`, 'latin1')).toContain('(a) S 1 (b)')
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1').replace('(a) S 1 (b)', 'x').split(' ')
  expect(startTimeOf(child.pid)?.split('@')[0]).toBe(stat[21])
  child.end()
  await child.exited
})

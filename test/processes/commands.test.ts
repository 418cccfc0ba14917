import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { CommandSpawnOptions, RunningCommand } from '../../src/processes/command.js'
import { endIfSame, type StartRecord } from '../../src/processes/start-record.js'
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
  writeFileSync(path.join(harness.dir, 'daemon.sh'), 'trap "" TERM HUP; echo $$ > daemon; exec /bin/sleep 600')
})
afterEach(() => harness.close())

async function start(script: string, options: Partial<CommandSpawnOptions> = {}) {
  const command = await harness.processes.command({
    argv: ['bash', '-c', script],
    cwd: harness.dir,
    signal: never(),
    script: false,
    input: false,
    keep: false,
    ...options,
  })
  return { command, output: outputOf(command) }
}

/** All of it, once nothing holds it any more. */
function outputOf(command: RunningCommand): Promise<string> {
  const chunks: Buffer[] = []
  command.output.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  return new Promise((resolve) => command.output.once('close', () => resolve(Buffer.concat(chunks).toString())))
}

/** The numbers that a script wrote to files of its folder. */
function pidIn(name: string): number {
  return Number(readFileSync(path.join(harness.dir, name), 'utf8'))
}

async function written(name: string): Promise<number> {
  await expect.poll(() => pidIn(name), { timeout: 10_000 }).toBeGreaterThan(0)
  return pidIn(name)
}

/** Leaves group, session and parent, and clears its environment. */
const DAEMON = `env -i /usr/bin/setsid /bin/sh -c '/bin/sh "$0" >/dev/null 2>&1 &' "$PWD/daemon.sh" &`

it('SH-01 output and errors come in their order, and a program can open /dev/stderr again', async () => {
  const { command, output } = await start('for i in 1 2 3; do echo o$i; echo e$i >&2; done; echo again >/dev/stderr')
  expect(await output).toBe('o1\ne1\no2\ne2\no3\ne3\nagain\n')
  expect(await command.exited).toEqual({ exitCode: 0, signal: null, left: [] })
})

it('SH-01 a script keeps its lines, its shell and its status, marked and held or not', async () => {
  const script = 'echo $LINENO $0 "$-" "$PWD"\necho $LINENO; echo "<$KIKI_GATE>"; ls /proc/self/fd | wc -l; (exit 7)'
  const plain = await start(script)
  for (const held of [{}, { beforeExec: () => undefined }]) {
    const { command, output } = await start(script, { script: true, ...held })
    expect(await output).toBe(await plain.output)
    expect(await command.exited).toMatchObject({ exitCode: 7 })
  }
  expect(await plain.output).toMatch(/^1 \S*bash \S+ \/.*\n2\n<>\n/)
  const empty = await start('# nothing', { script: true })
  expect(await empty.command.exited).toMatchObject({ exitCode: 0 })
  const wrong = await start('echo a\n)', { script: true })
  expect(await wrong.output).toMatch(/^a\n\S*bash: -c: line 2: syntax error/)
})

it('SH-04 standard input is at its end from the start, unless there is one', async () => {
  const none = await start('cat; read -r x || echo none')
  expect(await none.output).toBe('none\n')
  const some = await start('read -r line; echo "got $line"; cat', { input: true })
  some.command.input?.end('first\nrest')
  expect(await some.output).toBe('got first\nrest')
})

it('SH-02 FC-H06 what is left when the shell ends is ended and named, also where it holds the output', async () => {
  const { command, output } = await start('sleep 300 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; echo hi')
  expect(await output).toBe('hi\n')
  const { left } = await command.exited
  expect(left.map(({ name }) => name)).toEqual(['sleep'])
  await expectGone(left[0]?.pid ?? 0)
})

it('SH-02 FC-H03 FC-H05 what left its group, session and parent and cleared its environment is ended too', async () => {
  const cancel = new AbortController()
  const { command } = await start(`${DAEMON} setsid sleep 600 & echo $! > escaped; wait; sleep 600`, {
    signal: cancel.signal,
  })
  const daemon = await written('daemon')
  const escaped = await written('escaped')
  expect([isGone(daemon), isGone(escaped)]).toEqual([false, false])
  const began = performance.now()
  cancel.abort()
  await command.exited
  expect([isGone(daemon), isGone(escaped)]).toEqual([true, true])
  expect(performance.now() - began).toBeLessThan(2000)
})

it('SH-02 a daemon that a finished command leaves behind is ended', async () => {
  const { command } = await start(`${DAEMON} while [ ! -s daemon ]; do :; done`)
  const { left } = await command.exited
  expect(left.map(({ pid }) => pid)).toContain(pidIn('daemon'))
  expect(isGone(pidIn('daemon'))).toBe(true)
})

it('SH-02 with keep, what the program leaves goes on until it is ended', async () => {
  const { command } = await start(`${DAEMON} while [ ! -s daemon ]; do :; done; exit 3`, { keep: true })
  expect(await command.programEnded).toEqual({ exitCode: 3, signal: null })
  expect(isGone(pidIn('daemon'))).toBe(false)
  command.end()
  expect(await command.exited).toEqual({ exitCode: 3, signal: null, left: [] })
  expect(isGone(pidIn('daemon'))).toBe(true)
})

it('SH-04 a terminal is one, of its size, and takes what is typed', async () => {
  const { command, output } = await start('test -t 0 && test -t 1 && stty size; read -r x; echo "<$x>"', {
    terminal: { columns: 91, rows: 17 },
  })
  command.output.once('data', () => command.input?.write('typed\n'))
  expect(await output).toBe('17 91\r\ntyped\r\n<typed>\r\n')
  expect(await command.exited).toEqual({ exitCode: 0, signal: null, left: [] })
})

it('SH-02 a command in a terminal that is ended leaves nothing', async () => {
  const { command } = await start(`trap '' TERM HUP; ${DAEMON} sleep 600`, { terminal: { columns: 80, rows: 24 } })
  const daemon = await written('daemon')
  command.end()
  await command.exited
  expect(isGone(daemon)).toBe(true)
})

it('FC-H07 death by a signal is told as one', async () => {
  expect(await (await start('kill -9 $$')).command.exited).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
  expect(await (await start('kill -SEGV $$')).command.exited).toMatchObject({ exitCode: null, signal: 'SIGSEGV' })
})

it('GU-02 a held command, piped or in a terminal, runs only after its start is recorded', async () => {
  for (const terminal of [undefined, { columns: 80, rows: 24 }]) {
    const records: StartRecord[] = []
    const { command, output } = await start('cat seen', {
      ...(terminal === undefined ? {} : { terminal }),
      beforeExec(record) {
        records.push(record)
        writeFileSync(path.join(harness.dir, 'seen'), `recorded ${record.pid}`)
      },
    })
    expect(await output).toBe(`recorded ${command.pid}`)
    expect(records[0]?.mark).toBeGreaterThan(2 ** 40)
  }
})

it('GU-05 a record ends what belongs to a command whose host and launcher were killed, and nothing else', async () => {
  const records: StartRecord[] = []
  const { command } = await start(`${DAEMON} exec sleep 600`, { beforeExec: (record) => void records.push(record) })
  const daemon = await written('daemon')
  process.kill(launcherPid(built.launcherPath) ?? 0, 'SIGKILL')
  await expect(command.exited).rejects.toThrow('launcher')
  const [record] = records
  if (record === undefined) throw new Error('no record')
  const stranger = await start('echo $$ > stranger; exec sleep 600')
  await written('stranger')
  // As the next host does it; by another number and start, only what carries the mark is ended.
  endIfSame({ ...record, pid: pidIn('stranger'), startTime: 'another' })
  await expectGone(daemon)
  expect(isGone(pidIn('stranger'))).toBe(false)
  stranger.command.end()
})

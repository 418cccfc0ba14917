import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Build, build, tempDir } from './build.js'
import { GOOD_CLIENT } from './fixture-host.js'
import { call, lastLine, type RawClient, startRaw } from './raw-client.js'

interface Started {
  argv: string[]
  env: Record<string, string>
  pid: number
  cwd: string
}

let built: Build
let home: string
let client: RawClient

beforeAll(() => {
  built = build(true)
}, 60_000)
afterAll(() => built.remove())
beforeEach(() => {
  home = tempDir('kiki-home-')
})
afterEach(() => {
  client.child.kill('SIGKILL')
  const host = started()
  if (host && isAlive(host.pid)) process.kill(host.pid, 'SIGKILL')
  rmSync(home, { recursive: true, force: true })
})

const bridge = (env: Record<string, string> = {}): RawClient => {
  client = startRaw([built.main, 'mcp', '--client', GOOD_CLIENT, '--tools', '--home', home], env)
  return client
}

function started(): Started | undefined {
  const file = join(home, 'started.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Started) : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Session of a process: the field after state, parent and group (proc(5)). */
const sessionOf = (pid: number) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[3])

it('GU-09 CL-10 a missing host is started in a session of its own with a clean environment, and outlives the client', async () => {
  bridge({
    HOME: home,
    LC_ALL: 'C.UTF-8',
    KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS: '0',
    KIKI_COMMANDS_NON_INTERACTIVE: 'allow',
    AWS_SECRET_ACCESS_KEY: 'secret',
    DEBUG: '*',
    NODE_OPTIONS: '--no-deprecation',
  })
  expect((await client.open()).result).toBeDefined()
  const host = started()
  expect(host?.argv).toEqual(['start', '--background', '--unless-stopped', '--home', home])
  expect(Object.keys(host?.env ?? {}).sort()).toEqual(['HOME', 'KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS', 'LC_ALL', 'PATH'])
  expect(host?.cwd).toBe(home)
  expect(sessionOf(host?.pid ?? 0)).toBe(host?.pid)
  client.child.stdin?.end()
  expect((await client.exit).code).toBe(0)
  expect(isAlive(host?.pid ?? 0)).toBe(true)
  expect(client.stderr()).toBe('')
}, 20_000)

it('GU-09 CL-10 after `kiki stop` no host is started: the bridge says so and ends', async () => {
  writeFileSync(join(home, 'stopped'), '')
  bridge()
  expect((await client.exit).code).toBe(1)
  expect(client.stderr()).toMatch(/^kiki mcp: Kiki was stopped by its owner .*Run `kiki start .*\n$/)
  expect(started()).toBeUndefined()
})

it('GU-23 FC-T03 a host that was killed is started again, and the call in flight is not repeated', async () => {
  bridge()
  await client.open()
  const first = started()
  client.send(call(1, 'effect', { key: 'once' }))
  client.send(call(2, 'echo', { message: 'the effect was begun before this' }))
  await client.answer(2)
  process.kill(first?.pid ?? 0, 'SIGKILL')
  expect((await client.answer(1)).error?.data).toMatchObject({ may_have_run: true })
  client.send(call(3, 'echo', { message: 'x' }))
  expect((await client.answer(3)).result).toBeDefined()
  expect(started()?.pid).not.toBe(first?.pid)
  expect(readFileSync(join(home, 'effects'), 'utf8')).toBe('once\n')
}, 20_000)

it('CL-10 a host that cannot start: its last words, what to do, exit code 1', async () => {
  writeFileSync(join(home, 'broken'), '')
  bridge()
  expect((await client.exit).code).toBe(1)
  expect(lastLine(client.stderr())).toMatch(/could not be started: kiki: The database is corrupt\. Run `kiki start/)
  expect(client.stderr().trim().split('\n')).toHaveLength(1)
}, 20_000)

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { callApi, type TestHost } from '../helpers/host.js'
import { holdSearches } from './held.js'

const HOST = fileURLToPath(new URL('../fixtures/clock-host.mjs', import.meta.url))
const HOUR = 3_600_000

let base: string
let home: string
let workspace: string
let child: ChildProcess
let lines: AsyncIterableIterator<string>
let host: { pid: number; socket: string }
let clients: TestClient[]

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-clock-')))
  home = join(base, 'home')
  workspace = join(base, 'ws')
  for (const folder of [home, workspace]) mkdirSync(folder, { mode: 0o700 })
  clients = []
})
afterEach(async () => {
  for (const client of clients) await client.close()
  await end('SIGKILL')
  rmSync(base, { recursive: true, force: true })
})

/** A host whose wall clock is wrong by so many milliseconds. */
async function start(wrong = 0): Promise<void> {
  child = spawn(process.execPath, [HOST, home, String(wrong)], { stdio: ['pipe', 'pipe', 'inherit'] })
  if (child.stdout === null) throw new Error('its output is piped')
  lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  host = await answer()
}

async function end(signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}

async function answer<T>(): Promise<T> {
  const line = await lines.next()
  return JSON.parse(line.value) as T
}

function move(clock: 'wall' | 'steady', ms: number): Promise<{ now: number; steady: number }> {
  child.stdin?.write(`${clock} ${ms}\n`)
  return answer()
}

const api = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  callApi<T>(host.socket, method, path, body)

async function connection(more: Record<string, unknown> = {}): Promise<string> {
  const grant = { tools: ['files', 'search'], ceiling: 'full' }
  return (await api<{ id: string }>('POST', '/api/connections', { name: 'test', grant, ...more })).id
}

async function client(id: string): Promise<{ ref: string; client: TestClient }> {
  const made = await api<{ session_ref: string }>('POST', '/api/sessions', { connection: id, workspace })
  const client = await connectClient({ home }, id, 'v1', { session: made.session_ref, args: ['--no-start'] })
  clients.push(client)
  return { ref: made.session_ref, client }
}

const write = (to: TestClient, key: string) =>
  to.call('Write', { path: `${key}.txt`, content: key, _kiki: { idempotency_key: key } })
const operationOf = (result: CallResult) =>
  meta<{ operation_id: string; status: string; replayed?: boolean }>(result, 'kiki/operation')
const codeOf = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code

// A machine that slept is a step ahead: the clock that never steps stood still meanwhile.
it.each([
  ['an hour ahead, as after sleep', [HOUR]],
  ['an hour back', [-HOUR]],
  ['ahead and back', [HOUR, -HOUR]],
  ['back and ahead', [-HOUR, HOUR]],
])('GU-44 steps of the wall clock (%s) neither stall nor run anything again', async (_name, steps) => {
  await start()
  const id = await connection()
  const { ref, client: one } = await client(id)
  const first = await write(one, 'before')
  const release = await holdSearches({ ...host, home } as TestHost, id, ref)
  for (const step of steps) {
    const asked = performance.now()
    const search = one.call('Grep', { pattern: 'before', _kiki: { wait_ms: 700, idempotency_key: `s${step}` } })
    await move('wall', step)
    const receipt = await search
    // The wait ends in its own time: not at once, and not in an hour.
    expect(operationOf(receipt).status).toBe('running')
    expect(performance.now() - asked).toBeGreaterThan(600)
    expect(performance.now() - asked).toBeLessThan(20_000)

    const again = await write(one, 'before')
    expect(operationOf(again)).toMatchObject({ operation_id: operationOf(first).operation_id, replayed: true })
    expect(codeOf(await write(one, `after${step}`))).toBeUndefined()
    const status = await api<{ uptime_s: number }>('GET', '/api/status')
    expect(status.uptime_s).toBeGreaterThanOrEqual(0)
    expect(status.uptime_s).toBeLessThan(300)
  }
  release()
  for (const step of steps) {
    const found = await one.call('Grep', { pattern: 'before', _kiki: { wait_ms: 20_000, idempotency_key: `s${step}` } })
    expect(operationOf(found).status).toBe('completed')
    expect(textOf(found)).toContain('before.txt')
  }
  const { operations } = await api<{ operations: { tool: string; status: string }[] }>('GET', '/api/operations')
  expect(operations.filter(({ tool }) => tool === 'Write')).toHaveLength(1 + steps.length)
  // A client that comes now is let in: its credential is good on either clock.
  expect(codeOf(await write((await client(await connection())).client, 'late'))).toBeUndefined()
})

it.each([HOUR, -HOUR])(
  'FC-H02 SH-01 GU-44 a step of %i ms ends no command before its time, and keeps none beyond it',
  async (step) => {
    await start()
    const made = await api<{ id: string }>('POST', '/api/connections', {
      name: 'commands',
      grant: { tools: ['shell'], ceiling: 'full', allow_commands: true, sandbox: 'off' },
    })
    const { client: one } = await client(made.id)
    const run = (command: string, timeout_ms: number, key: string) =>
      one.call('Bash', { command, timeout_ms, _kiki: { idempotency_key: key } })
    const fine = run('echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done', 60_000, 'fine')
    const late = run('sleep 900', 2000, 'late')
    await move('wall', step)
    writeFileSync(join(workspace, 'go'), '')
    expect(textOf(await fine)).toMatch(/^begun\ndone\n/)
    expect(codeOf(await late)).toBe('timeout')
  },
)

it.each([HOUR, -HOUR])('GU-44 a host that starts with its wall clock %i ms off runs nothing again', async (wrong) => {
  await start()
  const id = await connection()
  const { ref, client: one } = await client(id)
  const first = await write(one, 'before')
  const file = join(workspace, 'before.txt')
  const { mtimeNs } = statSync(file, { bigint: true })
  const release = await holdSearches({ ...host, home } as TestHost, id, ref)
  const running = await one.call('Grep', { pattern: 'x', _kiki: { wait_ms: 0, idempotency_key: 'running' } })
  expect(operationOf(running).status).toBe('running')
  await end('SIGKILL')
  release()
  await start(wrong)
  const again = await write(one, 'before')
  expect(operationOf(again)).toMatchObject({ operation_id: operationOf(first).operation_id, replayed: true })
  expect(statSync(file, { bigint: true }).mtimeNs).toBe(mtimeNs)
  const ended = await one.call('Grep', { pattern: 'x', _kiki: { idempotency_key: 'running' } })
  expect(operationOf(ended)).toMatchObject({ operation_id: operationOf(running).operation_id, status: 'failed' })
  expect(codeOf(await write(one, 'after'))).toBeUndefined()
  expect(readFileSync(join(workspace, 'after.txt'), 'utf8')).toBe('after')
})

it('GU-44 a connection expires when either clock says so, and a step back gives it no more time', async () => {
  await start()
  writeFileSync(join(workspace, 'a'), 'a')
  const expiring = () => connection({ expires_at: Date.now() + HOUR / 2 })
  const byWall = (await client(await expiring())).client
  const bySteady = (await client(await expiring())).client
  const renewed = await expiring()
  const bySteadyLater = (await client(renewed)).client
  const read = async (one: TestClient) => codeOf(await one.call('Read', { path: 'a' }))

  await move('wall', -HOUR)
  expect(await read(byWall)).toBeUndefined()
  await move('steady', HOUR / 2 - 60_000)
  expect(await read(bySteady)).toBeUndefined()
  await api('PATCH', `/api/connections/${renewed}`, { expires_at: Date.now() + HOUR })
  await move('steady', 61_000)
  expect(await read(bySteady)).toBe('connection_revoked')
  expect(await read(byWall)).toBe('connection_revoked')
  // A new date counts from when it was given.
  expect(await read(bySteadyLater)).toBeUndefined()

  await move('wall', HOUR)
  const later = (await client(await expiring())).client
  expect(await read(later)).toBeUndefined()
  await move('wall', HOUR)
  expect(await read(later)).toBe('connection_revoked')
})

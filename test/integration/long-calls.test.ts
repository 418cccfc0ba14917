import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson } from '../helpers/run-kiki.js'

let host: TestHost
let busy: TestClient
let other: TestClient

beforeAll(async () => {
  host = await startHost()
  writeFileSync(join(host.workspace, 'small'), 'small\n')
  const clientOf = async () => {
    const id = await host.connection()
    return connectClient(host, id, 'v1', { session: await host.session(id) })
  }
  busy = await clientOf()
  other = await clientOf()
})
afterAll(async () => {
  await busy.close()
  await other.close()
  await host.stop()
})

/** Wide, for a busy machine: what it forbids is to wait for the whole of the long call. */
const MOST_MS = 2000

const timed = async <T>(work: Promise<T>): Promise<[T, number]> => {
  const begun = performance.now()
  return [await work, performance.now() - begun]
}
const codeOf = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
let key = 0
const keyed = (args: object) => ({ ...args, _kiki: { idempotency_key: `k${++key}`, wait_ms: 45_000 } })

/** Makes a long call and, until its end, small ones of another client and of the owner, each of which has to be answered in time. */
async function meanwhile(name: string, args: object, leastProbes = 10): Promise<CallResult> {
  let over = false
  const call = busy.call(name, keyed(args)).finally(() => {
    over = true
  })
  const status = timed(kikiJson(host.home, ['status']))
  let probes = 0
  for (; !over; probes++) {
    const [read, ms] = await timed(other.call('Read', { path: 'small' }))
    expect(textOf(read)).toContain('small')
    expect(ms).toBeLessThan(MOST_MS)
    const [, apiMs] = await timed(host.api('GET', '/api/status'))
    expect(apiMs).toBeLessThan(MOST_MS)
  }
  expect((await status)[1]).toBeLessThan(2 * MOST_MS)
  expect(probes).toBeGreaterThanOrEqual(leastProbes)
  const result = await call
  expect(codeOf(result)).toBeUndefined()
  return result
}

it('GR-02 FI-07 FI-09 edits of a million places each let others have their turn, and are all or nothing', async () => {
  const file = join(host.workspace, 'million')
  const before = 'foo bar\n'.repeat(1_000_000)
  writeFileSync(file, before)
  const round = [
    { old_string: 'foo', new_string: 'quux', replace_all: true, expected_count: 1_000_000 },
    { old_string: 'quux', new_string: 'foo', replace_all: true, expected_count: 1_000_000 },
  ]
  const last = { old_string: 'bar', new_string: 'baz', replace_all: true }
  const result = await meanwhile('MultiEdit', {
    path: 'million',
    edits: [...round, ...round, ...round, ...round, last],
  })
  expect(meta<{ count: number }>(result, 'kiki/result').count).toBe(9_000_000)
  const after = readFileSync(file)
  expect(sha256(after)).toBe(sha256(Buffer.from('foo baz\n'.repeat(1_000_000))))
  expect(meta<{ sha256: string }>(result, 'kiki/result').sha256).toBe(sha256(after))

  await meanwhile('Undo', {}, 1)
  expect(sha256(readFileSync(file))).toBe(sha256(Buffer.from(before)))
})

it('FI-15 a small edit of the file during a long one is not lost, nor is the long one', async () => {
  for (const [name, link] of [
    ['shared', false],
    ['linked', true],
  ] as const) {
    const file = join(host.workspace, name)
    writeFileSync(file, `${'foo bar\n'.repeat(600_000)}END\n`)
    // A file of two names is written in place: its identity stays, and only its content tells that it changed.
    if (link) linkSync(file, `${file}.2`)
    const long = busy.call('Edit', keyed({ path: name, old_string: 'foo', new_string: 'quux', replace_all: true }))
    const small: CallResult[] = []
    for (let place = 0; place < 3; place++) {
      small.push(await other.call('Edit', keyed({ path: name, old_string: 'END', new_string: `${place}END` })))
    }
    const marks = small.map((result, place) => (codeOf(result) === undefined ? `${place}` : '')).join('')
    expect(marks).toBe('012')
    expect(codeOf(await long)).toBeUndefined()
    expect(sha256(readFileSync(file))).toBe(sha256(Buffer.from(`${'quux bar\n'.repeat(600_000)}${marks}END\n`)))
  }
})

it('FI-15 FI-06 a file that another program changes all the time refuses a long edit, and holds what that program wrote', async () => {
  const file = join(host.workspace, 'restless')
  const body = 'foo bar\n'.repeat(400_000)
  const mark = (round: number) => `${round}`.padStart(8)
  const content = (round: number) => body + mark(round)
  writeFileSync(file, content(0))
  const fd = openSync(file, 'r+')
  let over = false
  const long = busy.call('Edit', keyed({ path: 'restless', old_string: 'foo', new_string: 'quux', replace_all: true }))
  const end = long.finally(() => {
    over = true
  })
  let round = 0
  while (!over) {
    writeSync(fd, mark(++round), body.length)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  closeSync(fd)
  const code = codeOf(await end)
  expect(['conflict', undefined]).toContain(code)
  const found = readFileSync(file, 'utf8')
  // Where it went through all the same, it was on the whole of what stood there at one moment.
  if (code === 'conflict') expect(found).toBe(content(round))
  else expect(found.slice(0, -8)).toBe(body.replaceAll('foo', 'quux'))
  expect(readdirSync(host.workspace).filter((name) => name.startsWith('.kiki-'))).toEqual([])
})

it('FI-12 FI-14 a folder of hundreds of files is deleted, and brought back, while others have their turn', async () => {
  const folder = join(host.workspace, 'tree')
  for (let part = 0; part < 4; part++) {
    mkdirSync(join(folder, `${part}`), { recursive: true })
    for (let name = 0; name < 100; name++) writeFileSync(join(folder, `${part}`, `${name}`), `${part} ${name}`)
  }
  const result = await meanwhile('Delete', { path: 'tree', recursive: true })
  expect(meta<{ entries: number }>(result, 'kiki/result').entries).toBe(405)
  expect(existsSync(folder)).toBe(false)
  await meanwhile('Undo', {})
  for (let part = 0; part < 4; part++) {
    for (let name = 0; name < 100; name++) {
      expect(readFileSync(join(folder, `${part}`, `${name}`), 'utf8')).toBe(`${part} ${name}`)
    }
  }
})

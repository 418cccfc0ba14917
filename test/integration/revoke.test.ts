import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { settledWithin } from '../../src/lib/async.js'
import { call } from '../bridge/raw-client.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { createRandom, type Random } from '../helpers/random.js'
import { openStream, type Stream, upgrade } from '../helpers/stream.js'
import { type Watcher, watch } from '../helpers/watcher.js'
import { descendants, isAlive } from './host-process.js'

let host: TestHost
let watcher: Watcher
beforeAll(async () => {
  host = await startHost()
  watcher = await watch(host.socket)
  // Many seconds of real work for ripgrep: Unicode word boundaries over text that is not ASCII.
  const words = Array.from({ length: 200_000 }, (_, i) => `é${(i * 7919) % 100_003}`).join(' ')
  mkdirSync(join(host.workspace, 'text'))
  writeFileSync(join(host.workspace, 'text/words.txt'), words)
})
afterAll(async () => {
  await watcher.close()
  await host.stop()
})

const SLOW = '\\b(\\w+\\s+){60}\\b[a-v]{3}(\\w+\\s+){60}\\b'
const HELD = 4
const QUEUED = 26
const ASKED = 20
/** Latest instant of the revoke after the first call was sent, in milliseconds. */
const LATEST_MS = 300
const DEAD_MS = 2000

interface Row {
  id: string
  tool: string
  target: string
  status: string
  effects_possible: boolean
}

/** One connection with its streams: one works freely, the other has to ask. */
async function openPlace(name: string) {
  const connection = await host.connection({ concurrency: HELD + 2, rate: null })
  const free = await host.session(connection, { mode: 'full' })
  const manual = await host.session(connection, { mode: 'manual' })
  const streams = [
    await openStream(host.socket, { connection, session: free, bridge: `bridge_${name}_free_00` }),
    await openStream(host.socket, { connection, session: manual, bridge: `bridge_${name}_asks_00` }),
  ] as const
  return { connection, streams, folder: name }
}
type Place = Awaited<ReturnType<typeof openPlace>>

/** Searches whose ripgrep stands still: they hold their slots for as long as nobody ends them. */
async function holdSearches({ streams: [free] }: Place): Promise<number[]> {
  const before = new Set(ripgreps())
  for (let i = 0; i < HELD; i++)
    free.send(
      call(`held-${i}`, 'Grep', {
        pattern: SLOW,
        multiline: true,
        path: 'text',
        _kiki: { idempotency_key: `held-${i}` },
      }),
    )
  for (;;) {
    const held = ripgreps().filter((pid) => !before.has(pid))
    for (const pid of held) process.kill(pid, 'SIGSTOP')
    if (held.length === HELD) return held
    await nextTurn()
  }
}

function ripgreps(): number[] {
  return descendants(host.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'rg'
    } catch {
      return false // It has just ended.
    }
  })
}

/** Two slots are left for the writes of the one stream; those of the other wait for the owner. */
function sendWrites({ streams: [free, manual], folder }: Place): void {
  const write = (stream: Stream, name: string) =>
    stream.send(call(name, 'Write', { path: `${folder}/${name}.txt`, content: name, _kiki: { idempotency_key: name } }))
  for (let i = 0; i < Math.max(QUEUED, ASKED); i++) {
    if (i < QUEUED) write(free, `queued-${i}`)
    if (i < ASKED) write(manual, `asked-${i}`)
  }
}

/** Says yes to some of what is asked, as it comes, until the place is gone. */
async function approveSome({ connection }: Place, random: Random): Promise<void> {
  for (;;) {
    const { connectionId, approvalId, state } = (await watcher.next(
      (event, data) => data.connectionId === connection && (event === 'approval.changed' || data.status === 'revoked'),
    )) as Record<string, string>
    if (approvalId === undefined) return expect(connectionId).toBe(connection)
    if (state === 'asked' && random.chance(0.3)) await host.api('POST', `/api/approvals/${approvalId}/approve`)
  }
}

const rowsOf = async (connection: string) =>
  (await host.api<{ operations: Row[] }>('GET', `/api/operations?connection=${connection}&limit=200`)).operations

function contents(folder: string): Record<string, string> {
  const dir = join(host.workspace, folder)
  return Object.fromEntries(
    readdirSync(dir)
      .sort()
      .map((name) => [name, readFileSync(join(dir, name), 'utf8')]),
  )
}

/** Everything that has to be so by the time the owner has the answer, or two seconds later. */
async function checkRevoked(
  { connection, streams, folder }: Place,
  held: number[],
  seen: Record<string, string>,
): Promise<void> {
  const rows = await rowsOf(connection)
  expect(rows.filter(({ status }) => status !== 'cancelled' && status !== 'completed')).toEqual([])
  expect(rows.filter(({ tool }) => tool === 'Grep').map(({ status }) => status)).toEqual(Array(HELD).fill('cancelled'))
  for (const { tool, target, status, effects_possible } of rows) {
    if (tool !== 'Write') continue
    const name = target.slice(folder.length + 1)
    if (status === 'completed') expect(seen[name]).toBe(name.replace('.txt', ''))
    else if (!effects_possible) expect(seen[name]).toBeUndefined()
  }
  const { approvals } = await host.api<{ approvals: { connection: { id: string } }[] }>('GET', '/api/approvals')
  expect(approvals.filter((one) => one.connection.id === connection)).toEqual([])
  expect(await settledWithin(Promise.all(streams.map(({ ended }) => ended)), DEAD_MS)).toBe(true)
  expect(held.filter(isAlive)).toEqual([])
  for (const bridge of ['bridge_new_00000000', `bridge_${folder}_free_00`])
    await expect(host.api('POST', '/api/bridge/credential', { client: connection, bridge })).rejects.toThrow(
      /connection_revoked/,
    )
  for (const { credential } of streams) {
    const { status, socket } = await upgrade(host.socket, credential)
    socket.destroy()
    expect(status).toBe(403)
  }
  const { entries } = await host.api<{ entries: Record<string, unknown>[] }>(
    'GET',
    `/api/audit?connection=${connection}&limit=200`,
  )
  expect(entries.filter(({ action }) => action === 'connection.revoked')).toMatchObject([
    { actor: 'owner', status: 'done' },
  ])
  const calls = entries
    .filter(({ action }) => action === 'call')
    .map(({ operation, status }) => `${operation} ${status}`)
  expect(calls.toSorted()).toEqual(rows.map(({ id, status }) => `${id} ${status}`).toSorted())
}

it('FC-W03 GU-30 AP-09 a revoke at any instant of 50 running, queued and waiting operations ends all of it at once, and keeps the record', async () => {
  const random = createRandom(30)
  const seen = new Map<string, Record<string, string>>()
  const states = new Set<string>()
  for (let round = 0; round < 8; round++) {
    const place = await openPlace(`round${round}`)
    mkdirSync(join(host.workspace, place.folder))
    const held = await holdSearches(place)
    const approving = approveSome(place, random)
    const instant = random.below(LATEST_MS)
    sendWrites(place)
    await new Promise((resolve) => setTimeout(resolve, instant))
    for (const { tool, status } of await rowsOf(place.connection)) states.add(`${tool} ${status}`)
    const began = performance.now()
    await host.api('POST', `/api/connections/${place.connection}/revoke`)
    expect(performance.now() - began).toBeLessThan(DEAD_MS)
    seen.set(place.folder, contents(place.folder))
    await checkRevoked(place, held, contents(place.folder))
    await approving
  }
  // Nothing has begun since.
  for (const [folder, files] of seen) expect(contents(folder)).toEqual(files)
  // The instants were such that every state was met.
  for (const state of ['Grep running', 'Write accepted', 'Write waiting_approval']) expect([...states]).toContain(state)
}, 180_000)

it('GU-30 AP-09 the token of a revoked token connection is good for nothing from then on', async () => {
  const made = await host.api<{ id: string; token: string }>('POST', '/api/connections', { name: 't', kind: 'token' })
  const usable = () => {
    const db = new BetterSqlite3(join(host.home, 'kiki.db'), { readonly: true })
    try {
      return db
        .prepare('SELECT count(*) FROM connection_tokens WHERE connection_id = ? AND revoked_at IS NULL')
        .pluck()
        .get(made.id)
    } finally {
      db.close()
    }
  }
  const ask = async () => {
    const headers = { authorization: `Bearer ${made.token}` }
    return (await fetch(`${host.ownerUrl}/api/status`, { headers })).status
  }
  expect([usable(), await ask()]).toEqual([1, 401])
  await host.api('POST', `/api/connections/${made.id}/revoke`)
  expect([usable(), await ask()]).toEqual([0, 401])
  const { status, socket } = await upgrade(host.socket, made.token)
  socket.destroy()
  expect(status).toBe(403)
})

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

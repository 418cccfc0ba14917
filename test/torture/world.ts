import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import BetterSqlite3 from 'better-sqlite3'
import { callApi } from '../helpers/host.js'

const PROGRAM = fileURLToPath(new URL('../fixtures/faulty-host.mjs', import.meta.url))

/** A host that can be killed at any moment, by itself at a commit boundary or from here. */
export interface FaultyHost {
  child: ChildProcess
  lines: Interface
  socket: string
  /** Resolves when the process has ended. */
  gone: Promise<unknown>
}

export interface World {
  base: string
  home: string
  workspace: string
  close(): void
}

export function createWorld(): World {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-kill-')))
  const home = join(base, 'home')
  mkdirSync(home, { mode: 0o700 })
  const workspace = join(base, 'ws')
  mkdirSync(workspace)
  return { base, home, workspace, close: () => rmSync(base, { recursive: true, force: true }) }
}

/** A host that is loaded but has not begun; `at` is the commit boundary at which it kills itself, counted from its start. */
export function spawnHost({ home }: World, at?: number, flags: readonly string[] = []): ChildProcess {
  const args = [...flags, PROGRAM, home, ...(at === undefined ? [] : [String(at)])]
  return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
}

/** Lets a host begin; undefined when it was gone before it was ready. */
export async function startFaulty(
  world: World,
  at?: number,
  child = spawnHost(world, at),
): Promise<FaultyHost | undefined> {
  child.stdin?.write('go\n')
  const gone = child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : once(child, 'exit')
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })
  const first = await Promise.race([once(lines, 'line') as Promise<[string]>, gone.then(() => undefined)])
  if (first === undefined) {
    if (child.signalCode !== 'SIGKILL') throw new Error(`a host ended by itself with ${child.exitCode}`)
    return undefined
  }
  return { child, lines, socket: (JSON.parse(first[0]) as { socket: string }).socket, gone }
}

/** From now on the host dies at its n-th commit boundary. @returns false when it is dead already. */
export async function arm(host: FaultyHost, n: number): Promise<boolean> {
  const armed = once(host.lines, 'line').then(() => true)
  // Its end may come while this is written.
  host.child.stdin?.on('error', () => {})
  host.child.stdin?.write(`${n}\n`)
  return Promise.race([armed, host.gone.then(() => false)])
}

/** At its n-th commit boundary from now the host stands still. @returns what resolves then, and the function that lets it go on. */
export async function holdAt(host: FaultyHost, { base }: World, n: number) {
  const file = join(base, `go-${randomUUID()}`)
  const armed = once(host.lines, 'line')
  host.child.stdin?.write(`hold ${n} ${file}\n`)
  await armed
  return { held: once(host.lines, 'line'), release: () => writeFileSync(file, '') }
}

export async function kill(host: Pick<FaultyHost, 'child' | 'gone'>): Promise<void> {
  host.child.kill('SIGKILL')
  await host.gone
}

export async function stop(host: FaultyHost): Promise<void> {
  host.child.kill('SIGTERM')
  await host.gone
  if (host.child.exitCode !== 0)
    throw new Error(`the host stopped with ${host.child.exitCode ?? host.child.signalCode}`)
}

/** A connection that may change files, and a session in the workspace. */
export async function grant(host: FaultyHost, { workspace }: World, fields: Record<string, unknown> = {}) {
  const connection = await callApi<{ id: string }>(host.socket, 'POST', '/api/connections', {
    name: 'kill',
    grant: { tools: ['files', 'search'], ceiling: 'full', ...fields },
  })
  const body = { connection: connection.id, workspace }
  const session = await callApi<{ session_ref: string }>(host.socket, 'POST', '/api/sessions', body)
  return { connection: connection.id, session: session.session_ref }
}

export interface Row {
  id: string
  key: string
  status: string
  attempt: number
  effects_possible: number
}

/** What a dead or stopped host has left: read from a copy, so that nothing of it is touched before the next start. */
export function inspect({ base, home }: World, whole: boolean): { rows: Map<string, Row>; texts: Map<string, number> } {
  const copy = join(base, 'copy.db')
  for (const end of ['', '-wal']) {
    rmSync(copy + end, { force: true })
    if (existsSync(join(home, `kiki.db${end}`))) copyFileSync(join(home, `kiki.db${end}`), copy + end)
  }
  rmSync(`${copy}-shm`, { force: true })
  const db = new BetterSqlite3(copy)
  try {
    const sound = whole ? db.pragma('integrity_check', { simple: true }) : 'ok'
    if (sound !== 'ok') throw new Error(`integrity_check says: ${String(sound)}`)
    const rows = db
      .prepare(
        'SELECT id, idempotency_key AS key, status, attempt, effects_possible FROM operations WHERE idempotency_key IS NOT NULL',
      )
      .all() as Row[]
    const texts = db.prepare('SELECT title, count(*) FROM saved_texts GROUP BY title').raw().all() as [string, number][]
    return { rows: new Map(rows.map((row) => [row.key, row])), texts: new Map(texts) }
  } finally {
    db.close()
  }
}

/** Rows that a stopped host has left. */
export function inspectCounts({ home }: World): { attachments: number; operations: number } {
  const db = new BetterSqlite3(join(home, 'kiki.db'), { readonly: true })
  try {
    const count = (table: string) => Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get())
    return { attachments: count('attachments'), operations: count('operations') }
  } finally {
    db.close()
  }
}

/** MiB of heap that a host started with `--expose-gc` keeps: resident memory tells when V8 collected last, not what is kept. */
export async function heapOf({ child, lines }: FaultyHost): Promise<number> {
  const told = once(lines, 'line') as Promise<[string]>
  child.stdin?.write('heap\n')
  return (JSON.parse((await told)[0]) as { heap: number }).heap / 1024 / 1024
}

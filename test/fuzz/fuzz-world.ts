import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { settledWithin } from '../../src/lib/async.js'
import { connectClient, textOf } from '../helpers/clients.js'
import { callApi } from '../helpers/host.js'
import { createWorld, type FaultyHost, grant, startFaulty, stop, type World } from '../torture/world.js'

const PROGRAM = fileURLToPath(new URL('../fixtures/faulty-host.mjs', import.meta.url))

/** A host has so long to answer a plain question after a batch, in milliseconds (GU-66: no hang). */
const PROMPT_MS = 2000

/** A host that is fed with nonsense, and what must not change by it. */
export interface FuzzWorld {
  world: World
  host: FaultyHost
  pid: number
  ownerUrl: string
  ownerToken: string
  faults: string[]
  /** The same question after each batch: is it there, and does it answer in time? */
  check(after: string): Promise<void>
  /** Ends everything; what the host has logged and what it has changed is looked at here. */
  close(): Promise<void>
}

export async function openFuzzWorld(): Promise<FuzzWorld> {
  const world = createWorld()
  const faults: string[] = []
  prepare(world)
  const child = spawn(process.execPath, ['--expose-gc', PROGRAM, world.home], { stdio: 'pipe' })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const host = await startFaulty(world, undefined, child)
  if (host === undefined) throw new Error(`the host did not start: ${stderr}`)
  const { pid, owner_url: ownerUrl } = await callApi<{ pid: number; owner_url: string }>(
    host.socket,
    'GET',
    '/api/status',
  )
  const place = await grant(host, { ...world, workspace: join(world.base, 'judge') })
  const judge = await connectClient(world, place.connection, 'v1', { session: place.session })
  const before = untouched(world)
  return {
    ...{ world, host, pid, ownerUrl, faults },
    ownerToken: readFileSync(join(world.home, 'owner.token'), 'utf8').trim(),
    async check(after) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the host ended after ${after}: ${stderr}`)
      const asked = Promise.all([judge.call('Read', { path: 'read.txt' }), callApi(host.socket, 'GET', '/api/status')])
      if (!(await settledWithin(asked, PROMPT_MS))) faults.push(`no answer within ${PROMPT_MS} ms after ${after}`)
      const [read, status] = await asked
      if (!textOf(read).includes('the judge reads this')) faults.push(`a read failed after ${after}: ${textOf(read)}`)
      if ((status as { pid: number }).pid !== pid) faults.push(`another process answers after ${after}`)
    },
    async close() {
      await judge.close()
      await stop(host)
      faults.push(...bugsIn(world), ...differences(before, untouched(world)))
      if (stderr !== '') faults.push(`the host wrote on standard error: ${stderr.slice(0, 1000)}`)
      world.close()
    },
  }
}

function prepare({ base, home, workspace }: World): void {
  const write = (path: string, text: string) => writeFileSync(join(base, path), text)
  for (const folder of ['judge', 'ws/keep', 'ws/keep/sub', 'ws/play/sub', 'backups'])
    mkdirSync(join(base, folder), { recursive: true })
  write('judge/read.txt', 'the judge reads this\n')
  write('outside.txt', 'outside\n')
  for (let i = 0; i < 20; i++) write(`ws/keep/${i % 2 === 0 ? 'sub/' : ''}${i}.txt`, `kept ${i}\n`)
  for (const name of ['a', 'b', 'sub/c']) writeFileSync(join(workspace, `play/${name}.txt`), 'one\ntwo\nthree\n')
  writeFileSync(join(home, 'config.toml'), '[retention]\ndays = 2\n')
}

/** Every file that no input names. */
function untouched({ base }: World): Map<string, string> {
  const places = ['judge', 'ws/keep', 'outside.txt', 'home/config.toml', 'home/owner.token', 'home/keys']
  return new Map(
    places.flatMap((place) =>
      filesIn(join(base, place))
        .filter((file) => !file.includes('audit'))
        .map((file) => [file, createHash('sha256').update(readFileSync(file)).digest('hex')] as const),
    ),
  )
}

function filesIn(path: string): string[] {
  if (!lstatSync(path).isDirectory()) return [path]
  return readdirSync(path).flatMap((name) => filesIn(join(path, name)))
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter((name) => before.get(name) !== after.get(name)).map((name) => `${name} was changed`)
}

/** Lines of level 50 (error) in the host's log, which nothing that comes from outside may bring about. */
function bugsIn({ home }: World): string[] {
  const folder = join(home, 'logs')
  return readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line.includes('"level":50') || /\bbug\b/.test(line))
    .map((line) => `logged: ${line.slice(0, 1000)}`)
}

import { spawn } from 'node:child_process'
import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { identityOf } from '../../src/workspace/files.js'
import { type ChangeRecord, createJournal, readJournal, sha256 } from '../../src/workspace/journal.js'
import { removeTemporary, restoreInPlace } from '../../src/workspace/recover.js'
import { bundleProgram } from '../helpers/bundle.js'
import { createSandbox, type Sandbox } from '../helpers/tool-context.js'

const WRITER = fileURLToPath(new URL('../fixtures/steady-writer.ts', import.meta.url))
const ROUNDS = 25

let sandbox: Sandbox
let program: string
beforeAll(async () => {
  sandbox = createSandbox()
  program = await bundleProgram(WRITER, join(sandbox.base, 'bundle'))
})
afterAll(() => sandbox.remove())

/** Starts the writer, and kills it a random while after it has finished `changes` of them. */
async function killedWriter(journalDir: string, changes: number): Promise<void> {
  const child = spawn(process.execPath, [program, sandbox.root, sandbox.home, journalDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_code, signal) => resolve(signal)))
  let seen = 0
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString().split('\n').length - 1
      if (seen >= changes) resolve()
    })
    child.once('exit', () => resolve())
  })
  // Not a wait for anything: it only spreads the kills over the steps of a change.
  const until = performance.now() + Math.random() * 15
  while (performance.now() < until) await setImmediate()
  child.kill('SIGKILL')
  expect(await ended).toBe('SIGKILL')
}

const WHOLE = [Buffer.from('start'), Buffer.alloc(3_000_000, 'A'), Buffer.alloc(2_000_000, 'B')].map(sha256)
const hashOf = (name: string) => sha256(readFileSync(join(sandbox.root, name)))

function lastRecords(dir: string): { operationId: string; record: ChangeRecord }[] {
  const operations = [...new Set(readdirSync(dir).map((name) => name.replace(/\.\d+$/, '')))].sort().slice(-2)
  return operations.flatMap((operationId) => readJournal(dir, operationId).map((record) => ({ operationId, record })))
}

it('FI-06 kill -9 at any instant leaves the old or the new content, and recovery mends a write in place', {
  timeout: 120_000,
}, async () => {
  let restored = 0
  let swept = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of ['plain.txt', 'linked.txt']) writeFileSync(join(sandbox.root, name), 'start')
    if (round === 0) linkSync(join(sandbox.root, 'linked.txt'), join(sandbox.root, 'twin.txt'))
    const dir = join(sandbox.home, `changes-${round}`)
    mkdirSync(dir)
    await killedWriter(dir, 1 + (round % 5))
    expect(WHOLE).toContain(hashOf('plain.txt'))
    for (const { operationId, record } of lastRecords(dir)) {
      if (removeTemporary(record)) swept += 1
      if (record.inPlace === true && restoreInPlace(dir, operationId, record) === 'restored') restored += 1
    }
    expect(WHOLE).toContain(hashOf('linked.txt'))
    expect(hashOf('twin.txt')).toBe(hashOf('linked.txt'))
    expect(readdirSync(sandbox.root).sort()).toEqual(['linked.txt', 'plain.txt', 'twin.txt'])
  }
  // Kills that met a change half way; without any the test would prove little.
  expect(restored + swept).toBeGreaterThan(0)
})

it('FI-06 a torn write in place is put back, and what was there instead is kept; whole content is left alone', () => {
  const dir = join(sandbox.home, 'torn')
  const path = join(sandbox.root, 'torn.txt')
  const [before, after] = [Buffer.from('old old old'), Buffer.from('new new')]
  writeFileSync(path, before)
  const record = createJournal({ dir, operationId: 'op_t' }).record(
    {
      kind: 'modify',
      path,
      mode: 0o644,
      beforeSha256: sha256(before),
      afterSha256: sha256(after),
      inPlace: true,
      identity: identityOf(statSync(path, { bigint: true })),
    },
    before,
  )
  expect(restoreInPlace(dir, 'op_t', record)).toBe('unchanged')
  writeFileSync(path, after)
  expect(restoreInPlace(dir, 'op_t', record)).toBe('complete')
  writeFileSync(path, 'new old old')
  expect(restoreInPlace(dir, 'op_t', record)).toBe('restored')
  expect(readFileSync(path)).toEqual(before)
  expect(readJournal(dir, 'op_t').at(-1)).toMatchObject({ seq: 1, beforeSha256: sha256(Buffer.from('new old old')) })
  // Another file of that name is not touched.
  expect(restoreInPlace(dir, 'op_t', { ...record, identity: '1:1' })).toBe('gone')
})

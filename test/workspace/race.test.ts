import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { changeFile, openFile } from '../../src/workspace/files.js'
import { makeFolders } from '../../src/workspace/folders.js'
import { moveFile } from '../../src/workspace/move.js'
import { removeFile } from '../../src/workspace/remove.js'
import { createSandbox, type Sandbox } from '../helpers/tool-context.js'

const SWAPPER = createRequire(import.meta.url).resolve('../fixtures/link-swapper.mjs')
const SWAPS = 10_000
const SECRET = 'outside and secret'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
  mkdirSync(join(sandbox.root, 'd'))
  writeFileSync(join(sandbox.root, 'd', 'f'), 'inside')
  writeFileSync(join(sandbox.root, 'f'), 'inside')
  writeFileSync(join(sandbox.out, 'f'), SECRET)
})
afterEach(() => sandbox.remove())

/** What every call may fail with while names are swapped under it; anything else is a bug. */
const EXPECTED = ['path_denied', 'not_found', 'conflict', 'invalid_arguments']

/** The race was real: the call went through between two swaps, and it met a link. */
function metBoth(outcomes: Map<string, number>): boolean {
  return (outcomes.get('done') ?? 0) > 20 && (outcomes.get('path_denied') ?? 0) > 5
}

async function tally(counts: Map<string, number>, action: () => unknown): Promise<void> {
  let outcome = 'done'
  try {
    await action()
  } catch (error) {
    if (!(error instanceof KikiError)) throw error
    outcome = error.code
  }
  counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
}

function read(context: ReturnType<Sandbox['context']>, path: string): void {
  const file = openFile(context.workspace, path)
  try {
    const bytes = Buffer.alloc(64)
    const content = bytes.toString('utf8', 0, readSync(file.fd, bytes, 0, bytes.length, 0))
    expect(content).not.toContain(SECRET)
  } finally {
    file.close()
  }
}

it('GU-50 PA-02 10,000 swaps of a file and its folder for links out write and read 0 bytes outside', {
  timeout: 120_000,
}, async () => {
  const stop = join(sandbox.base, 'stop')
  const child = spawn(process.execPath, [SWAPPER, sandbox.root, sandbox.out, String(SWAPS), stop], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  let running = true
  void ended.then(() => (running = false))
  const counts = new Map<string, number>()
  const reads = new Map<string, number>()
  for (let turn = 0; running; turn += 1) {
    const context = sandbox.context()
    for (let again = 0; again < 20; again += 1) {
      for (const path of ['d/f', 'f']) await tally(reads, () => read(context, path))
    }
    for (const path of ['d/f', 'f']) {
      await tally(counts, () => changeFile(context, path, () => Buffer.from(`inside ${turn}`), { create: true }))
    }
    await tally(counts, () => makeFolders(context, `d/made/${turn}`))
    await tally(counts, () => moveFile(context, 'd/f', 'd/g', { overwrite: true }))
    await tally(counts, () => removeFile(context, 'd/g'))
    await setImmediate()
    if (output.includes('done') && [reads, counts].every(metBoth)) writeFileSync(stop, '')
  }
  expect(await ended).toBe(0)
  expect(readdirSync(sandbox.out)).toEqual(['f'])
  expect(readFileSync(join(sandbox.out, 'f'), 'utf8')).toBe(SECRET)
  // The race was real: both ways were met, for reads and for changes.
  for (const outcomes of [reads, counts]) {
    expect(metBoth(outcomes)).toBe(true)
    expect([...outcomes.keys()].filter((outcome) => outcome !== 'done' && !EXPECTED.includes(outcome))).toEqual([])
  }
})

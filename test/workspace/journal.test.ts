import { mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  createJournal,
  journalContent,
  MAX_KEPT_BYTES,
  readJournal,
  removeJournal,
  sha256,
} from '../../src/workspace/journal.js'
import { createSandbox, refusal, type Sandbox } from '../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const OPERATION = 'op_1'
const binary = Buffer.from([0, 10, 255, 10, 13])

function recordTwo() {
  const journal = createJournal({ dir: sandbox.journalDir, operationId: OPERATION })
  journal.record({ kind: 'mkdir', path: '/w/new\nline' })
  journal.record({ kind: 'modify', path: '/w/a', mode: 0o755, beforeSha256: sha256(binary), afterSha256: 'x' }, binary)
  return journal
}

const fileOf = (seq: number) => join(sandbox.journalDir, `${OPERATION}.${seq}`)

it('FI-14 a change and the content before it are read back as they were', () => {
  const journal = recordTwo()
  const records = readJournal(sandbox.journalDir, OPERATION)
  expect(records).toEqual(journal.records())
  expect(records.map((record) => [record.seq, record.kind, record.path, record.size])).toEqual([
    [0, 'mkdir', '/w/new\nline', undefined],
    [1, 'modify', '/w/a', 5],
  ])
  expect(journalContent(sandbox.journalDir, OPERATION, 0)).toBeUndefined()
  expect(journalContent(sandbox.journalDir, OPERATION, 1)).toEqual(binary)
  expect(readJournal(sandbox.journalDir, 'op_2')).toEqual([])
})

it('GU-60 FI-14 the journal is readable by its owner only', () => {
  recordTwo()
  expect(statSync(sandbox.journalDir).mode & 0o777).toBe(0o700)
  expect(statSync(fileOf(1)).mode & 0o777).toBe(0o600)
})

it('FI-14 a torn last file is a change that never began; a torn earlier one is damage', async () => {
  recordTwo()
  const whole = readFileSync(fileOf(1))
  for (let length = 0; length < whole.length; length += 1) {
    writeFileSync(fileOf(1), whole.subarray(0, length))
    expect(readJournal(sandbox.journalDir, OPERATION)).toHaveLength(1)
  }
  writeFileSync(fileOf(1), whole)
  truncateSync(fileOf(0), 3)
  expect((await refusal(() => readJournal(sandbox.journalDir, OPERATION))).code).toBe('internal_error')
})

it('FI-14 kept content that was altered is not given back', async () => {
  recordTwo()
  const bytes = readFileSync(fileOf(1))
  bytes[bytes.length - 1] = 7
  writeFileSync(fileOf(1), bytes)
  expect((await refusal(() => journalContent(sandbox.journalDir, OPERATION, 1))).code).toBe('internal_error')
  expect((await refusal(() => journalContent(sandbox.journalDir, OPERATION, 9))).code).toBe('not_found')
})

it('FI-14 what cannot be kept refuses the change: too much, or a file that is there already', async () => {
  const journal = createJournal({ dir: sandbox.journalDir, operationId: OPERATION })
  const much = Buffer.alloc(MAX_KEPT_BYTES + 1)
  expect((await refusal(() => journal.record({ kind: 'delete', path: '/w/a' }, much))).code).toBe('too_large')
  mkdirSync(sandbox.journalDir, { recursive: true })
  writeFileSync(fileOf(0), 'kept')
  expect((await refusal(() => journal.record({ kind: 'mkdir', path: '/w/a' }))).code).toBe('internal_error')
  expect(readFileSync(fileOf(0), 'utf8')).toBe('kept')
  expect(journal.records()).toEqual([])
})

it('FI-14 a journal can go on after a crash, and be removed', () => {
  recordTwo()
  const more = createJournal({ dir: sandbox.journalDir, operationId: OPERATION, firstSeq: 2 })
  expect(more.record({ kind: 'mkdir', path: '/w/c' }).seq).toBe(2)
  expect(readJournal(sandbox.journalDir, OPERATION)).toHaveLength(3)
  removeJournal(sandbox.journalDir, OPERATION)
  removeJournal(sandbox.journalDir, OPERATION)
  expect(readJournal(sandbox.journalDir, OPERATION)).toEqual([])
})

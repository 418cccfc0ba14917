import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openLogFile } from '../../src/lib/log-file.js'

let dir: string
let file: string
let errors: unknown[]
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kiki-log-'))
  file = join(dir, 'kiki.log')
  errors = []
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const open = (maxBytes: number, kept: number) =>
  openLogFile(file, { maxBytes, kept, onError: (error) => errors.push(error) })
const numbersIn = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).n)
const line = (n: number) => `${JSON.stringify({ n, text: 'grüße '.repeat(n % 7) })}\n`

it('PK-07 a log is exchanged when it has grown, and no line is lost, split or out of order', async () => {
  const log = open(2000, 1000)
  for (let n = 0; n < 2000; n++) {
    log.write(line(n))
    if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await log.close()
  const names = readdirSync(dir).sort((a, b) => Number(b.split('.')[2] ?? 0) - Number(a.split('.')[2] ?? 0))
  expect(names.length).toBeGreaterThan(10)
  expect(names.flatMap((name) => numbersIn(join(dir, name)))).toEqual(Array.from({ length: 2000 }, (_, n) => n))
  for (const name of names) {
    const { size, mode } = lstatSync(join(dir, name))
    expect(size).toBeLessThan(2200)
    expect(mode & 0o777).toBe(0o600)
  }
  expect(errors).toEqual([])
})

it('PK-07 only so many files are kept', async () => {
  const log = open(500, 3)
  for (let n = 0; n < 1000; n++) log.write(line(n))
  await log.close()
  expect(readdirSync(dir).sort()).toEqual(['kiki.log', 'kiki.log.1', 'kiki.log.2', 'kiki.log.3'])
  const last = ['kiki.log.1', 'kiki.log'].flatMap((name) => {
    return lstatSync(join(dir, name)).size === 0 ? [] : numbersIn(join(dir, name))
  })
  expect(last.at(-1)).toBe(999)
})

it('PK-07 what an earlier host left is gone on with, or put aside if it is large', async () => {
  writeFileSync(file, line(1))
  let log = open(500, 3)
  log.write(line(2))
  await log.close()
  expect(numbersIn(file)).toEqual([1, 2])
  writeFileSync(file, `${'x'.repeat(499)}\n`)
  log = open(500, 3)
  log.write(line(3))
  await log.close()
  expect(numbersIn(file)).toEqual([3])
  expect(lstatSync(`${file}.1`).size).toBe(500)
})

it('PK-07 a file that cannot be exchanged costs no line', async () => {
  mkdirSync(join(dir, 'kiki.log.1', 'in the way'), { recursive: true })
  const log = open(200, 1)
  for (let n = 0; n < 50; n++) log.write(line(n))
  await log.close()
  expect(numbersIn(file)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  expect(errors.length).toBeGreaterThan(0)
})

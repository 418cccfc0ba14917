import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { leaveChangeLocks, lockForChange } from '../../src/workspace/change-lock.js'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kiki-locks-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

it('FI-15 one host at a time may replace a file; others are held by nothing', () => {
  const free = lockForChange(dir, '1:2')
  expect(free).toBeDefined()
  expect(lockForChange(dir, '1:2')).toBeUndefined()
  lockForChange(dir, '1:3')?.()
  free?.()
  lockForChange(dir, '1:2')?.()
  expect(readdirSync(dir)).toEqual([])
})

it('FI-15 the lock of a host that was killed holds nobody', () => {
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  symlinkSync(`${pid}`, join(dir, 'change-1-2'))
  const free = lockForChange(dir, '1:2')
  expect(free).toBeDefined()
  free?.()
  expect(readdirSync(dir)).toEqual([])
})

it('GU-60 an empty folder is taken away with the host, one in use stays, and one that is gone is made again', () => {
  const free = lockForChange(dir, '1:2')
  leaveChangeLocks(dir)
  expect(readdirSync(dir)).toEqual(['change-1-2'])
  free?.()
  leaveChangeLocks(dir)
  expect(existsSync(dir)).toBe(false)
  lockForChange(dir, '1:2')?.()
  expect(readdirSync(dir)).toEqual([])
})

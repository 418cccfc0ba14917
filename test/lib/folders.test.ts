import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makePrivateFolders } from '../../src/lib/folders.js'

let base: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'kiki-folders-'))
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

it('makes what is missing, with the mode, and says where it began', () => {
  expect(makePrivateFolders(join(base, 'a/b/c'))).toBe(join(base, 'a'))
  for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(base, made)).mode & 0o777).toBe(0o700)
  expect(makePrivateFolders(join(base, 'a/b/c'))).toBeUndefined()
})

it('refuses where a file stands in the way', () => {
  writeFileSync(join(base, 'file'), '')
  expect(() => makePrivateFolders(join(base, 'file'))).toThrow('EEXIST')
  expect(() => makePrivateFolders(join(base, 'file/under'))).toThrow('ENOTDIR')
})

it.skipIf(!existsSync('/proc/self'))('ends where the kernel lets nobody make a folder', () => {
  expect(() => makePrivateFolders('/proc/kiki-no-such/home')).toThrow('ENOENT')
})

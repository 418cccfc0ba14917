import { expect, it } from 'vitest'
import { newId } from '../../src/lib/ids.js'

it('ids are unique, safe in file names and URLs, and sort by the time they were made', () => {
  const many = Array.from({ length: 20_000 }, () => newId('op'))
  expect(new Set(many).size).toBe(many.length)
  for (const id of many) expect(id).toMatch(/^op_[0-9a-z]{10}[A-Za-z0-9_-]{16}$/)
  const times = [0, 35, 36, 1_700_000_000_000, 1_700_000_000_001, 2 ** 42]
  const ids = times.map((time) => newId('txt', time).slice(0, 14))
  expect([...ids].sort()).toEqual(ids)
})

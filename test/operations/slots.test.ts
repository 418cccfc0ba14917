import { expect, it } from 'vitest'
import { createSlots } from '../../src/operations/slots.js'

const never = new AbortController().signal
const settled = async (promise: Promise<unknown>) =>
  Promise.race([promise.then(() => true), new Promise((resolve) => setImmediate(() => resolve(false)))])

it('GR-02 GR-06 a call runs when its connection and its session both have room, in the order they came', async () => {
  const slots = createSlots()
  const lanes = (session: string, cap: number | null) => [
    { key: 'connection', cap: 2 },
    { key: session, cap },
  ]
  const a1 = slots.tryTake(lanes('a', 1))
  expect(slots.tryTake(lanes('a', 1))).toBeUndefined()
  const a2 = slots.take(lanes('a', 1), never)
  const b1 = slots.tryTake(lanes('b', null))
  const b2 = slots.take(lanes('b', null), never)
  // The connection is full; a place that session b gives back cannot go to a, which has its one.
  b1?.()
  expect(await settled(b2)).toBe(true)
  expect(await settled(a2)).toBe(false)
  a1?.()
  a1?.()
  expect(await settled(a2)).toBe(true)
  const waiting = slots.take(lanes('c', null), never)
  expect(await settled(waiting)).toBe(false)
  ;(await a2)()
  expect(await settled(waiting)).toBe(true)
})

it('GR-02 a waiting call that is cancelled gives its turn away', async () => {
  const slots = createSlots()
  const lanes = [{ key: 'x', cap: 1 }]
  const first = slots.tryTake(lanes)
  const abort = new AbortController()
  const second = slots.take(lanes, abort.signal)
  const third = slots.take(lanes, never)
  abort.abort()
  ;(await second)()
  expect(await settled(third)).toBe(false)
  first?.()
  expect(await settled(third)).toBe(true)
})

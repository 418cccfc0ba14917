import { describe, expect, it } from 'vitest'
import { deferred, settledWithin } from '../../src/lib/async.js'

const never = new Promise<never>(() => undefined)

describe('settledWithin', () => {
  it('tells a promise that settled, either way, from one that did not in time', async () => {
    expect(await settledWithin(Promise.resolve(1), 1000)).toBe(true)
    expect(await settledWithin(Promise.reject(new Error('no')), 1000)).toBe(true)
    expect(await settledWithin(never, 5)).toBe(false)
  })

  it('with no time left only looks whether it has settled', async () => {
    expect(await settledWithin(Promise.resolve(1), 0)).toBe(true)
    expect(await settledWithin(Promise.reject(new Error('no')), -5)).toBe(true)
    expect(await settledWithin(never, 0)).toBe(false)
  })

  it('a time beyond what a timer can hold does not end at once', async () => {
    const work = deferred<void>()
    const result = settledWithin(work.promise, 2 ** 31 + 1000)
    setTimeout(() => work.resolve(), 20)
    expect(await result).toBe(true)
  })

  it('an abort ends the wait, also one from before', async () => {
    const controller = new AbortController()
    const result = settledWithin(never, 60_000, controller.signal)
    controller.abort()
    expect(await result).toBe(false)
    expect(await settledWithin(never, 60_000, controller.signal)).toBe(false)
  })
})

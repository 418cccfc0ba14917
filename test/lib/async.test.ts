import { afterEach, describe, expect, it, vi } from 'vitest'
import { deferred, settledWithin, startTimer } from '../../src/lib/async.js'

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

describe('startTimer', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('GU-44 a time that no timer of Node can hold is waited for to its end, and not longer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    for (const ms of [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 12_345]) {
      let fired = 0
      startTimer(ms, () => fired++)
      vi.advanceTimersByTime(ms - 1)
      expect(fired).toBe(0)
      vi.advanceTimersByTime(1)
      expect(fired).toBe(1)
      vi.advanceTimersByTime(2 ** 33)
      expect(fired).toBe(1)
    }
  })

  it('GU-44 can be ended in any of its pieces, and so does a wait that is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const stop = startTimer(2 ** 33, () => expect.unreachable())
    vi.advanceTimersByTime(2 ** 32)
    stop()
    vi.advanceTimersByTime(2 ** 34)
    const late = settledWithin(never, 2 ** 31 + 5)
    let ended = false
    void late.then(() => {
      ended = true
    })
    await vi.advanceTimersByTimeAsync(2 ** 31 + 4)
    expect(ended).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await late).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  })
})

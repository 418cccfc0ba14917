import { describe, expect, it } from 'vitest'
import { createKeyedLock, deferred, settledWithin } from '../../src/lib/async.js'

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

describe('createKeyedLock', () => {
  it('runs tasks of one key one after another, in order, also past one that fails', async () => {
    const lock = createKeyedLock()
    const steps: string[] = []
    const gates = [deferred<void>(), deferred<void>(), deferred<void>()]
    const task = (i: number, fail = false) =>
      lock.run('file', async () => {
        steps.push(`begin ${i}`)
        await gates[i]?.promise
        steps.push(`end ${i}`)
        if (fail) throw new Error(`task ${i} failed`)
        return i
      })
    const results = [task(0), task(1, true), task(2)]
    const failed = expect(results[1]).rejects.toThrow('task 1 failed')
    for (const gate of gates.reverse()) gate.resolve()
    expect(await results[0]).toBe(0)
    await failed
    expect(await results[2]).toBe(2)
    expect(steps).toEqual(['begin 0', 'end 0', 'begin 1', 'end 1', 'begin 2', 'end 2'])
  })

  it('runs tasks of other keys at once', async () => {
    const lock = createKeyedLock()
    const gate = deferred<void>()
    const slow = lock.run('a', () => gate.promise)
    expect(await lock.run('b', async () => 'done')).toBe('done')
    gate.resolve()
    await slow
  })
})

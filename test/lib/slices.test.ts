import { expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { createPace, runFor, runInSlices, runWhole, type Sliced } from '../../src/lib/slices.js'

/** Keeps the processor busy for so many milliseconds, a little at a time. */
function* busy(ms: number, ended?: () => void): Sliced<string> {
  const end = performance.now() + ms
  try {
    while (performance.now() < end) yield
    return 'done'
  } finally {
    ended?.()
  }
}

/** Turns that the event loop had meanwhile. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let over = false
  const count = () => {
    turns++
    if (!over) setImmediate(count)
  }
  setImmediate(count)
  await work.finally(() => {
    over = true
  })
  return turns
}

const live = () => new AbortController().signal

it('gives the same result at once and in slices, and in slices others have their turn', async () => {
  expect(runWhole(busy(5))).toBe('done')
  expect(await runInSlices(busy(5), live())).toBe('done')
  expect(await turnsDuring(runInSlices(busy(200), live()))).toBeGreaterThan(5)
})

it('goes on from where it stood when a first piece was not enough', async () => {
  const work = busy(60)
  expect(runFor(work, 5)).toBeUndefined()
  expect(await runInSlices(work, live())).toBe('done')
  expect(runFor(busy(0), 5)).toEqual({ value: 'done' })
})

it('an abort ends the work, whose clean-up runs, with a refusal; a failure of the work is passed on', async () => {
  for (const reason of [undefined, new KikiError('cancelled', 'why')]) {
    const controller = new AbortController()
    let cleaned = false
    const running = runInSlices(
      busy(60_000, () => {
        cleaned = true
      }),
      controller.signal,
    )
    controller.abort(reason)
    const error = await running.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'cancelled' })
    if (reason !== undefined) expect(error).toBe(reason)
    expect(cleaned).toBe(true)
  }
  // biome-ignore lint/correctness/useYield: it fails before its first pause.
  const failing = function* (): Sliced<never> {
    throw new Error('of the work')
  }
  await expect(runInSlices(failing(), live())).rejects.toThrow('of the work')
})

it('a pace lets others have their turn in a loop that awaits', async () => {
  const loop = async () => {
    const pause = createPace()
    const end = performance.now() + 200
    while (performance.now() < end) await pause()
  }
  expect(await turnsDuring(loop())).toBeGreaterThan(5)
})

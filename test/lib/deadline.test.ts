import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRateLimit } from '../../src/calls/rate.js'
import { createSavedDeadlines, deadlineIn, hasPassed } from '../../src/lib/deadline.js'
import { KikiError } from '../../src/lib/errors.js'

const HOUR = 3_600_000

/** What can happen to a machine's clocks: time passes, the wall clock is put right or wrong, the machine sleeps. */
const happenings = fc.array(
  fc.oneof(
    fc.record({ passes: fc.integer({ min: 0, max: HOUR }), steps: fc.constant(0) }),
    fc.record({ passes: fc.constant(0), steps: fc.constantFrom(HOUR, -HOUR, 1, -1, 25 * HOUR, -25 * HOUR) }),
  ),
  { maxLength: 20 },
)

function clocks() {
  const time = { wall: Date.parse('2026-01-01T00:00:00Z'), steady: 1000 }
  const clock = { now: () => time.wall, monotonic: () => time.steady }
  const happen = ({ passes, steps }: { passes: number; steps: number }) => {
    time.steady += passes
    time.wall += passes + steps
  }
  return { time, clock, happen }
}

it('GU-44 a deadline has passed when either clock says so, whatever the wall clock did before', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3 * HOUR }), happenings, happenings, (ms, before, after) => {
      const { time, clock, happen } = clocks()
      before.forEach(happen)
      const deadline = deadlineIn(clock, ms)
      const saved = createSavedDeadlines(clock)
      saved.see('a', deadline.wall)
      const [wall, steady] = [time.wall, time.steady]
      for (const one of after) {
        happen(one)
        const expected = time.steady - steady >= ms || time.wall - wall >= ms
        expect(hasPassed(clock, deadline)).toBe(expected)
        expect(saved.hasPassed('a', wall + ms)).toBe(expected)
      }
    }),
  )
})

it('GU-44 another date for the same thing counts from when it is seen', () => {
  const { time, clock, happen } = clocks()
  const saved = createSavedDeadlines(clock)
  saved.see('a', time.wall + HOUR)
  happen({ passes: HOUR / 2, steps: -HOUR })
  const renewed = time.wall + HOUR
  saved.see('a', renewed)
  happen({ passes: HOUR - 1, steps: -HOUR })
  expect(saved.hasPassed('a', renewed)).toBe(false)
  happen({ passes: 1, steps: 0 })
  expect(saved.hasPassed('a', renewed)).toBe(true)
})

it('GU-44 a limit of calls a minute is the same whatever the wall clock does', () => {
  const refused = (limit: ReturnType<typeof createRateLimit>) => {
    try {
      limit.count('a', 3, 'setting')
      return undefined
    } catch (error) {
      if (error instanceof KikiError) return error.hint
      throw error
    }
  }
  fc.assert(
    fc.property(happenings, (happened) => {
      const [stepped, steady] = [clocks(), clocks()]
      const limits = [createRateLimit(stepped.clock), createRateLimit(steady.clock)] as const
      for (const one of happened) {
        stepped.happen(one)
        steady.happen({ ...one, steps: 0 })
        for (let call = 0; call < 2; call++) expect(refused(limits[0])).toBe(refused(limits[1]))
      }
    }),
  )
})

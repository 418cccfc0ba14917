import { expect, it } from 'vitest'
import { z } from 'zod'
import { argumentProblems } from '../../src/calls/argument-problems.js'
import { invalidArguments } from '../../src/calls/steps.js'

const schema = z.strictObject({
  path: z.string().min(1).max(5),
  depth: z.int().min(0).max(9).optional(),
  ratio: z.number().gt(0).lt(1).optional(),
  step: z.number().multipleOf(5).optional(),
  all: z.boolean().optional(),
  mode: z.enum(['fast', 'slow']).optional(),
  kind: z.literal('file').optional(),
  hash: z
    .string()
    .regex(/^[0-9a-f]+$/, 'must be hexadecimal digits')
    .optional(),
  type: z
    .string()
    .regex(/^[a-z]+$/)
    .optional(),
  text: z
    .string()
    .refine((value) => !value.includes('\0'), 'holds a NUL byte')
    .optional(),
  edits: z
    .array(z.strictObject({ old: z.string().min(2) }))
    .min(1)
    .max(2)
    .optional(),
})

it.each([
  [{}, '"path" is missing'],
  [{ path: undefined }, '"path" is missing'],
  [{ path: '' }, '"path" is empty'],
  [{ path: 3 }, '"path" must be a string, not a number'],
  [{ path: null }, '"path" must be a string, not null'],
  [{ path: ['a'] }, '"path" must be a string, not a list'],
  [{ path: { a: 1 } }, '"path" must be a string, not an object'],
  [{ path: true }, '"path" must be a string, not a boolean'],
  [{ path: 'abcdef' }, '"path" must have at most 5 characters, not 6'],
  [{ path: 'a', depth: '3' }, '"depth" must be a number, not a string'],
  [{ path: 'a', depth: 1.5 }, '"depth" must be a whole number, not 1.5'],
  [{ path: 'a', depth: -1 }, '"depth" must be at least 0, not -1'],
  [{ path: 'a', depth: 10 }, '"depth" must be at most 9, not 10'],
  [{ path: 'a', ratio: 0 }, '"ratio" must be more than 0, not 0'],
  [{ path: 'a', ratio: 1 }, '"ratio" must be less than 1, not 1'],
  [{ path: 'a', step: 7 }, '"step" must be a multiple of 5'],
  [{ path: 'a', all: 'yes' }, '"all" must be true or false, not a string'],
  [{ path: 'a', mode: 'quick' }, '"mode" must be one of "fast", "slow"'],
  [{ path: 'a', kind: 'link' }, '"kind" must be "file"'],
  [{ path: 'a', hash: 'xyz' }, '"hash" must be hexadecimal digits'],
  [{ path: 'a', type: 'A' }, '"type" does not have the form /^[a-z]+$/'],
  [{ path: 'a', text: '\0' }, '"text" holds a NUL byte'],
  [{ path: 'a', edits: {} }, '"edits" must be a list, not an object'],
  [{ path: 'a', edits: [] }, '"edits" is empty'],
  [{ path: 'a', edits: [{ old: 'ab' }, {}] }, '"edits.1.old" is missing'],
  [{ path: 'a', edits: [{ old: 'a' }] }, '"edits.0.old" must have at least 2 characters, not 1'],
  [{ path: 'a', edits: [3] }, '"edits.0" must be an object, not a number'],
  [{ path: 'a', edits: [{ old: 'ab', nwe: 1 }] }, 'unknown argument "nwe" in "edits.0"'],
  [{ path: 'a', pth: 1, x: 2 }, 'unknown argument "pth", "x"'],
  ['text', 'the whole must be an object, not a string'],
])('what is wrong with %j is said as: %s', (given, says) => {
  const error = schema.safeParse(given).error
  expect(argumentProblems(error?.issues ?? [], given)).toEqual([says])
})

it('a refusal names all that is wrong, and what to look at', () => {
  const given = { depth: 'x', y: 1 }
  const error = schema.safeParse(given).error
  if (error === undefined) throw new Error('it has to be refused')
  expect(invalidArguments('List', error, given)).toMatchObject({
    code: 'invalid_arguments',
    message:
      'The arguments of List are not valid: "path" is missing; "depth" must be a number, not a string; unknown argument "y".',
  })
})

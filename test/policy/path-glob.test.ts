import fc from 'fast-check'
import picomatch from 'picomatch'
import { expect, it } from 'vitest'
import { pathGlob } from '../../src/policy/path-glob.js'

it.each([
  ['a|b/**', 'a|b/c', true],
  ['a|b/**', 'a', false],
  ['{a,b}', 'a', false],
  ['{a,b}', '{a,b}', true],
  ['+(a)', '+(a)', true],
  ['a\\*b', 'a*b', true],
  ['a\\*b', 'axb', false],
  ['[a-c]x', 'bx', true],
  ['[!a-c]x', 'bx', false],
  ['[^a-c]x', 'dx', true],
  ['[', '[', true],
  ['**', '', true],
  ['**/x', 'x', true],
  ['a/**/b', 'a/b', true],
  ['a/**', 'a/b/c', true],
  ['a/**', 'a', false],
  ['*/**', 'a', false],
  ['*', 'a/b', false],
  ['.*', '.env', true],
  ['*', '.env', true],
])('PO-02 %s on %s: %s', (pattern, path, matches) => {
  expect(pathGlob(pattern).matches(path)).toBe(matches)
})

it('PO-02 it means what a well-known library means by the same signs', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?'), minLength: 1, maxLength: 4 })
  const pattern = fc.array(
    fc.oneof(
      name.filter((one) => !/\*\*/.test(one)),
      fc.constant('**'),
    ),
    { minLength: 1, maxLength: 4 },
  )
  const path = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '.', 'c'), minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 5,
  })
  const odd = (names: readonly string[]) => names.some((one) => one === '.' || one === '..')
  fc.assert(
    fc.property(pattern, path, (globs, names) => {
      // It takes `a/**` for `a` as well, `.gitignore` does not.
      fc.pre(globs.at(-1) !== '**' && !odd(globs) && !odd(names) && names.every((one) => !/^\.+$/.test(one)))
      const [glob, text] = [globs.join('/'), names.join('/')]
      const theirs = picomatch(glob, { dot: true, nonegate: true, noextglob: true, nobrace: true })(text)
      expect([glob, text, pathGlob(glob).matches(text)]).toEqual([glob, text, theirs])
    }),
    { numRuns: 3000, seed: 7 },
  )
})

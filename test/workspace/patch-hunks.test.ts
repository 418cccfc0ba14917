import { expect, it } from 'vitest'
import { runWhole } from '../../src/lib/slices.js'
import { applyHunks } from '../../src/workspace/patch-hunks.js'
import { parsePatch } from '../../src/workspace/patch-parse.js'

function apply(content: string, patch: string): string {
  const [section] = parsePatch(patch)
  return runWhole(applyHunks(Buffer.from(content), section?.hunks ?? [], 'f')).bytes.toString()
}

it('FI-10 FI-08 white space at line ends and quotes are overlooked, indentation never is', () => {
  const patch = '*** Begin Patch\n*** Update File: f\n@@\n say "x"\n-foo\n+bar\n*** End Patch'
  expect(apply('a\nsay “x” \nfoo\t\nb\n', patch)).toBe('a\nsay “x” \nbar\nb\n')
  expect(() => apply('a\n  say "x"\nfoo\nb\n', patch)).toThrow('its old lines are not in f')
  const blank = '*** Begin Patch\n*** Update File: f\n@@\n \n-foo\n+bar\n*** End Patch'
  expect(apply('a\n  \nfoo \nb\n', blank)).toBe('a\n  \nbar\nb\n')
})

it('FI-10 GU-66 a file of equal lines and a hunk with thousands of them is refused in good time and memory', () => {
  const lines = Array.from({ length: 5000 }, () => ' x').join('\n')
  const patch = `*** Begin Patch\n*** Update File: f\n@@\n${lines}\n+y\n*** End Patch`
  expect(() => apply('x\n'.repeat(100_000), patch)).toThrow('its lines stand more than 1000 times in f')
})

it('FI-10 two thousand hunks of a large file, in either style of line ends, are found at their lines', () => {
  const lines = Array.from({ length: 200_000 }, (_, at) => `line ${at % 7}`)
  const hunks = Array.from({ length: 2000 }, (_, at) => {
    const line = at * 100 + 50
    return `@@ -${line + 1},2 +${line + 1},2 @@\n-${lines[line]}\n+new ${at}\n ${lines[line + 1]}\n`
  })
  const patch = `--- a/f\n+++ b/f\n${hunks.join('')}`
  const expected = lines.map((line, at) => (at % 100 === 50 ? `new ${(at - 50) / 100}` : line))
  for (const eol of ['\n', '\r\n']) expect(apply(lines.join(eol), patch) === expected.join(eol)).toBe(true)
})

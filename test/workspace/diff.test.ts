import { applyPatch } from 'diff'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unifiedDiff, unifiedDiffOfBytes } from '../../src/workspace/diff.js'

describe('unifiedDiff', () => {
  it('FI-11 is a unified diff with three lines of context', () => {
    const before = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join('')
    expect(unifiedDiff(before, before.replace('line 10\n', 'ten\nand more\n'), { path: 'a.txt' })).toBe(
      [
        '--- a.txt',
        '+++ a.txt',
        '@@ -7,7 +7,8 @@',
        ' line 7',
        ' line 8',
        ' line 9',
        '-line 10',
        '+ten',
        '+and more',
        ' line 11',
        ' line 12',
        ' line 13',
      ].join('\n'),
    )
    expect(unifiedDiff('same', 'same', { path: 'a' })).toBe('')
    expect(unifiedDiff('', 'a\n', { path: 'a' })).toBe('--- a\n+++ a\n@@ -0,0 +1 @@\n+a')
    expect(unifiedDiff('a', 'a\n', { path: 'a' })).toContain('\\ No newline at end of file')
  })

  it('FI-11 applied to the text before gives the text after', () => {
    const text = fc
      .array(fc.constantFrom('a\n', 'b\n', 'é\n', 'è\n', '\n', '日'), { maxLength: 40 })
      .map((a) => a.join(''))
    fc.assert(
      fc.property(text, text, (before, after) => {
        const patch = unifiedDiff(before, after, { path: 'a', maxChars: 1e6 })
        expect(patch === '' ? before : applyPatch(before, `${patch}\n`)).toBe(after)
      }),
      { numRuns: 1000 },
    )
  })

  it('FI-11 cuts a huge line around the change, and characters stay whole', () => {
    const side = 'é'.repeat(2_500_000)
    const diff = unifiedDiff(`${side}NEEDLE${side}`, `${side}x${side}`, { path: 'a' })
    expect(diff.length).toBeLessThan(1200)
    expect(diff).toContain('éNEEDLEé')
    expect(diff).toContain('éxé')
    expect(diff).not.toContain('\ufffd')
    expect(diff).toMatch(/\[\d+ bytes\]…/)
  })

  it('FI-11 is bounded in time and size whatever changed', () => {
    const before = Array.from({ length: 200_000 }, (_, i) => `line ${i}\n`).join('')
    const cases = [
      before.replaceAll('line', 'row'),
      before.split('\n').reverse().join('\n'),
      before.replaceAll('\n', ''),
      '',
      before.replace('line 5\n', 'five\n').replace('line 199990\n', 'last\n'),
    ]
    for (const after of cases) {
      const diff = unifiedDiff(before, after, { path: 'a', maxChars: 1000 })
      expect(diff.length).toBeLessThan(1700)
      expect(diff).toMatch(/^--- a\n\+\+\+ a\n(@@ -|\[too many)/)
      expect(diff).toMatch(
        /\[diff cut: \d+ more lines\]$|\[the change is longer than is shown here\]$|\[too many changes[^\n]*\]$/,
      )
    }
  })

  it('FI-11 shows a changed line end, and no carriage returns where they are the same', () => {
    expect(unifiedDiff('a\r\nb\r\n', 'x\r\nb\r\n', { path: 'a' })).toBe('--- a\n+++ a\n@@ -1,2 +1,2 @@\n-a\n+x\n b')
    expect(unifiedDiff('a\r\nb\n', 'a\nb\n', { path: 'a' })).toContain('-a␍\n+a\n')
  })

  it('FI-11 numbers lines of the whole file and decodes only what is shown', () => {
    const head = Buffer.from('x\n'.repeat(1000))
    const legacy = Buffer.from([0x93, 0xfa, 10])
    const diff = unifiedDiffOfBytes(
      Buffer.concat([legacy, head, Buffer.from('key=1\n')]),
      Buffer.concat([legacy, head, Buffer.from('key=2\n')]),
      { path: 'a' },
    )
    expect(diff).toBe('--- a\n+++ a\n@@ -999,4 +999,4 @@\n x\n x\n x\n-key=1\n+key=2')
  })
})

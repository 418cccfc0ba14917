import { describe, expect, it } from 'vitest'
import { targetOf } from '../../src/owner/operation-target.js'

describe('what a call was about', () => {
  it.each([
    [{ path: 'src/a.ts', content: 'x' }, 'src/a.ts'],
    [{ pattern: '*.md' }, '*.md'],
    [{ pattern: 'todo', path: 'src' }, 'todo in src'],
    [{ pattern: 'todo', path: '.' }, 'todo'],
    [{ from: 'a', to: 'b' }, 'a to b'],
    [{ operation_id: 'op_1' }, 'op_1'],
    [{ path: '' }, null],
    [{ path: 7 }, null],
    [{}, null],
    [null, null],
  ])('CL-08 %j is %j', (args, target) => {
    expect(targetOf(args)).toBe(target)
  })

  it('CL-08 of a long path the end is kept, of a pattern the beginning, and no sign is cut in two', () => {
    expect(targetOf({ path: `${'😀'.repeat(100)}/end.ts` })).toBe(`…${'😀'.repeat(72)}/end.ts`)
    expect(targetOf({ pattern: `begin${'x'.repeat(100)}` })).toBe(`begin${'x'.repeat(74)}…`)
  })
})

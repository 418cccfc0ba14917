import { expect, it } from 'vitest'
import { decide } from '../../src/policy/decide.js'
import { lesserMode, MODES, parseMode } from '../../src/policy/modes.js'

it('PO-01 each mode lets through what it says, for every effect', () => {
  const kinds = (mode: (typeof MODES)[number]) =>
    (['read', 'write', 'execute', 'network'] as const).map(
      (effect) => decide({ tool: { name: 'T', effect }, ceiling: mode, sessionMode: mode }).kind,
    )
  expect(MODES.map((mode) => [mode, ...kinds(mode)])).toEqual([
    ['read-only', 'allow', 'deny', 'deny', 'deny'],
    ['manual', 'allow', 'ask', 'ask', 'ask'],
    ['auto-edit', 'allow', 'allow', 'ask', 'ask'],
    ['full', 'allow', 'allow', 'allow', 'allow'],
  ])
})

it('PO-01 GR-06 the least of ceiling, session mode and profile mode counts, and the decision names it', () => {
  for (const ceiling of MODES) {
    for (const sessionMode of MODES) {
      for (const profileMode of [undefined, ...MODES]) {
        const least = [sessionMode, ...(profileMode === undefined ? [] : [profileMode])].reduce(lesserMode, ceiling)
        const tool = { name: 'Write', effect: 'write' } as const
        const decision = decide({ tool, ceiling, sessionMode, ...(profileMode === undefined ? {} : { profileMode }) })
        expect(decision.kind).toBe(decide({ tool, ceiling: least, sessionMode: least }).kind)
        const named = { 'connection.ceiling': ceiling, 'session.mode': sessionMode, 'profile.mode': profileMode }
        expect(named[decision.by as keyof typeof named]).toBe(least)
      }
    }
  }
})

it('PO-01 yolo is an alias of full', () => {
  expect(parseMode('yolo')).toBe('full')
  expect(parseMode('FULL')).toBeUndefined()
})

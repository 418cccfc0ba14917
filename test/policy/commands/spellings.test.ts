import { beforeAll, describe, expect, it } from 'vitest'
import { isReadOnly, openShellParser, type ShellParser } from '../../../src/policy/commands/parser.js'
import { HARMLESS, SPELLINGS } from './spellings.js'

let parser: ShellParser
beforeAll(async () => {
  parser = await openShellParser()
})

describe('the corpus of spellings', () => {
  it('CC-04 it has at least 200 of them, each once', () => {
    const scripts = SPELLINGS.map((one) => one.script)
    expect(scripts.length).toBeGreaterThanOrEqual(200)
    expect(new Set(scripts).size).toBe(scripts.length)
  })

  it.each(SPELLINGS)('CC-01 CC-04 $script', ({ script, classes, opaque }) => {
    const parsed = parser.parse(script)
    expect({ classes: parsed.classes, reason: parsed.opaque?.reason }).toEqual({
      classes,
      reason: opaque ? expect.any(String) : undefined,
    })
  })

  it('CC-01 what people write all day is read-only, and nothing else in the corpus that changes anything is', () => {
    for (const { script } of HARMLESS) expect(isReadOnly(parser.parse(script)), script).toBe(true)
    const admitted = SPELLINGS.filter(({ script }) => isReadOnly(parser.parse(script)))
    for (const { script, classes } of admitted) expect(classes, script).toEqual(['read_only'])
  })
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLineSplitter } from '../../src/bridge/lines.js'

function split(chunks: Buffer[], max: number): { lines: string[]; long: [string, string][] } {
  const lines: string[] = []
  const long: [string, string][] = []
  const splitter = createLineSplitter(max, {
    line: (line) => lines.push(line.toString('latin1')),
    tooLong: (head, tail) => long.push([head.toString('latin1'), tail.toString('latin1')]),
  })
  for (const chunk of chunks) splitter.push(chunk)
  return { lines, long }
}

it('any text in any chunks gives the same lines', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', '\n', '\r', 'é') })), (parts) => {
      const text = Buffer.from(parts.join(''))
      const whole = text.toString('latin1').split('\n').slice(0, -1)
      expect(
        split(
          parts.map((part) => Buffer.from(part)),
          1000,
        ).lines,
      ).toEqual(whole.map((line) => `${line}\n`))
    }),
  )
})

it('FC-T02 a line that is too long is dropped while it arrives; its ends are kept and the next line is whole', () => {
  const long = `head${'x'.repeat(20_000)}tail`
  const bytes = Buffer.from(`a\n${long}\nb\n`)
  for (const size of [1, 7, 4096, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    )
    const result = split(chunks, 10_000)
    expect(result.lines).toEqual(['a\n', 'b\n'])
    expect(result.long).toHaveLength(1)
    expect(result.long[0]?.[0]).toMatch(/^headx+$/)
    expect(result.long[0]?.[1]).toMatch(/^x+tail\n$/)
  }
})

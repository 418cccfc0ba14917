import { describe, expect, it } from 'vitest'
import { operationWords } from '../../src/cli/operation-words.js'

const more = 'kiki operations show op_1 --json'
const call = {
  id: 'op_1',
  status: 'completed',
  client: { name: 'some-client', version: '1.2' },
  decision: { kind: 'allow', by: 'session.mode' },
  target: 'a.txt',
  arguments: { path: 'a.txt' },
  note: null,
  result: 'one\r\n\ttwo\u001b[31m',
}
const words = (change: Partial<typeof call>) => operationWords({ ...call, ...change }, more, { columns: undefined })

describe('one operation for a person', () => {
  it('CL-08 client and decision are words, line ends and tabs real, and nothing else steers the terminal', () => {
    const text = words({})
    expect(text).toContain('some-client 1.2')
    expect(text).toContain("allowed (by the session's mode)")
    expect(text).toMatch(/\none\n\ttwo\\u001b\[31m$/)
    expect(text).not.toContain(more)
  })

  it('CL-08 an allowed call that failed is said to have failed', () => {
    expect(words({ status: 'failed' })).toContain("allowed, then failed (by the session's mode)")
  })

  it('CL-08 a long result and long arguments are cut between signs, and the way to more is named', () => {
    const text = words({ result: `${'x'.repeat(3_999)}😀tail`, arguments: { path: 'y'.repeat(2_000) } })
    expect(text).toContain(`\n${'x'.repeat(3_999)}\nShown: the first 4000 characters of the result and the first 1000`)
    expect(text.endsWith(`More: ${more}`)).toBe(true)
    expect(text).not.toContain('y'.repeat(1_001))
    expect(words({ result: 'x'.repeat(4_000) })).not.toContain(more)
  })
})

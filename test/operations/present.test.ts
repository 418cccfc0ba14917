import { expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { errorText, refusal } from '../../src/operations/present.js'

it('a hint follows one line on that line, and several lines on a line of its own', () => {
  const code = 'conflict'
  expect(errorText({ code, message: 'It changed.' })).toBe('conflict: It changed.')
  expect(errorText({ code, message: 'It changed.', hint: 'Read it.' })).toBe('conflict: It changed. Read it.')
  const quoting = { code, message: 'The nearest is:\n1→ const a', hint: 'Read it.' }
  expect(errorText(quoting)).toBe('conflict: The nearest is:\n1→ const a\nRead it.')
})

it('a refusal quotes a file so that its hint cannot be taken for the file', () => {
  const error = new KikiError('invalid_arguments', 'No match. Nearest:\n1→ a', { hint: 'Copy the text.' })
  expect(refusal(error).content).toEqual([
    { type: 'text', text: 'invalid_arguments: No match. Nearest:\n1→ a\nCopy the text.' },
  ])
})

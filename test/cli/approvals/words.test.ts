import { describe, expect, it } from 'vitest'
import { endWords, type Question } from '../../../src/cli/approvals/question.js'
import { questionText } from '../../../src/cli/approvals/words.js'

const question: Question = {
  id: 'apr_1',
  operation: 'op_1',
  status: 'waiting_approval',
  connection: { id: 'client_1', name: 'Desk' },
  client: { name: 'some-client', version: '1' },
  session: { ref: 'ext_1', title: null, workspace: '/ws', mode: 'manual' },
  tool: 'Bash',
  effect: 'execute',
  arguments: { command: 'git status\n\tgit push \u202e' },
  shown: [{ name: 'command', value: 'git status\n\tgit push \u202e' }],
  command: null,
  unconfined: false,
  argument_hash: '00',
  why: { by: 'session.mode', reason: 'session.mode is manual' },
  covers: [],
  asked_at: '2031-01-01T00:00:00.000Z',
  expires_at: null,
  answer: null,
  scope: null,
  message: null,
  answered_by: null,
  answered_at: null,
  preview: null,
}

describe('a question in words', () => {
  it('AP-03 GU-32 FC-P10 every line of a command is shown, with what hides made visible', () => {
    const text = questionText(question)
    expect(text).toContain('\n  command\n  │ git status\n  │ ⇥   git push \\u{202e}\n')
    expect(text).toContain('covers this one call only')
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  })

  it('AP-03 the parsed command with its classes', () => {
    const command = {
      commands: [
        { text: 'git status', classes: ['read_only'], via: [] },
        { text: 'git push \u001b[2J', classes: ['network_egress', 'unknown\u0007'], via: ['sudo'] },
      ],
      classes: ['read_only', 'network_egress'],
      opaque: 'eval of a variable',
    } as Question['command']
    const text = questionText({ ...question, command })
    expect(text).toContain(
      '  │ git status\n    read_only\n  │ git push \\u{1b}[2J\n    network_egress, unknown\\u{7} (run by sudo)\n',
    )
    expect(text).toContain('Not all of it can be known: eval of a variable')
    expect(text).toContain('Altogether: read_only, network_egress')
  })

  it('AP-03 no argument can pose as one of the fields', () => {
    const value = 'x\nEffect     read\nYour answer\nApproving  nothing'
    const lines = questionText({ ...question, shown: [{ name: 'a\nEffect     read', value }] }).split('\n')
    expect(lines.filter((line) => line.startsWith('Effect'))).toEqual(['Effect     execute'])
    expect(lines.filter((line) => line === 'Your answer')).toHaveLength(1)
  })

  it('AP-06 tells how it ended and through whom', () => {
    const end = { answer: null, scope: null, message: null, status: 'cancelled' as const }
    expect(endWords(end)).toBe('cancelled before anybody answered')
    expect(endWords({ ...end, answer: 'approved', scope: 'always' })).toBe('approved always by the owner')
    expect(endWords({ ...end, answer: 'denied', answered_by: 'expiry' })).toContain('nobody answered in time')
    expect(endWords({ ...end, answer: 'denied', message: 'a\u001b[2J' })).toBe('denied by the owner: a\\u{1b}[2J')
  })
})

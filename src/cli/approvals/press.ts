import type { ApprovalScope } from '../../store/approvals.js'
import type { Answer } from './answer.js'
import type { Question } from './question.js'
import { choice, chosenOf, type View } from './view.js'

/** A key as Node.js' `readline` reads it. */
export interface Key {
  name?: string | undefined
  ctrl?: boolean | undefined
  meta?: boolean | undefined
  sequence?: string | undefined
}

/** Of the chosen question: rows on the screen, and lines altogether. */
export interface Page {
  rows: number
  lines: number
}

export type Act = { act: 'quit' } | { act: 'answer'; question: Question; answer: Answer }

export interface Pressed {
  view: View
  act?: Act
}

/** Characters of a message to the client that the host takes. */
const MAX_MESSAGE = 2000

/** What a key does. No answer is sent by one key alone but a denial, which runs nothing. */
export function press(view: View, key: Key, page: Page): Pressed {
  if (key.ctrl && key.name === 'c') return { view, act: { act: 'quit' } }
  const calm = { ...view, notice: undefined }
  if (view.help) return { view: { ...calm, help: false } }
  if (view.asking?.what === 'message') return typed(calm, view.asking.text, key)
  if (view.asking !== undefined) return confirmed(calm, view.asking.what, key)
  if (key.sequence === 'q') return { view, act: { act: 'quit' } }
  if (key.sequence === '?') return { view: { ...calm, help: true } }
  return chose(calm, key) ?? scrolled(calm, key, page) ?? asked(calm, key) ?? { view }
}

function chose(view: View, { name, sequence }: Key): Pressed | undefined {
  const step = name === 'down' || sequence === 'j' ? 1 : name === 'up' || sequence === 'k' ? -1 : 0
  if (step === 0) return undefined
  const { questions } = view
  const at = questions.findIndex(({ id }) => id === view.chosen)
  const to = at === -1 ? (step === 1 ? 0 : questions.length - 1) : clamp(at + step, questions.length - 1)
  const next = questions[to]
  return { view: next === undefined || to === at ? view : { ...view, ...choice(next.id) } }
}

function scrolled(view: View, { name, sequence }: Key, { rows, lines }: Page): Pressed | undefined {
  const page = Math.max(1, rows - 1)
  const last = Math.max(0, lines - rows)
  const to = (top: number) => ({ view: { ...view, top: clamp(top, last) } })
  if (name === 'pagedown' || name === 'space') return to(view.top + page)
  if (name === 'pageup' || sequence === 'b') return to(view.top - page)
  if (name === 'home' || sequence === 'g') return to(0)
  if (name === 'end' || sequence === 'G') return to(last)
  return undefined
}

function clamp(value: number, most: number): number {
  return Math.max(0, Math.min(value, most))
}

const SCOPES: Record<string, ApprovalScope> = { a: 'once', s: 'session', A: 'always' }

function asked(view: View, { sequence = '' }: Key): Pressed | undefined {
  const scope = SCOPES[sequence]
  if (scope === undefined && sequence !== 'd' && sequence !== 'm') return undefined
  const question = chosenOf(view)
  if (question === undefined)
    return { view: { ...view, notice: { text: 'No question is chosen: use ↑ or ↓.', tone: 'plain' } } }
  const blocked = blocker(view, question, scope)
  if (blocked !== undefined) return { view: { ...view, notice: { text: blocked, tone: 'bad' } } }
  if (scope !== undefined) return { view: { ...view, asking: { what: scope } } }
  if (sequence === 'm') return { view: { ...view, asking: { what: 'message', text: '' } } }
  return { view, act: { act: 'answer', question, answer: { verb: 'deny' } } }
}

function blocker(view: View, question: Question, scope: ApprovalScope | undefined): string | undefined {
  if (view.link !== 'connected') return 'The host is not there, so nothing can be answered now.'
  if (view.sending !== undefined) return 'An answer is on its way; press the key again after it.'
  if (scope === undefined || scope === 'once' || question.covers.length > 0) return undefined
  return 'This call cannot be told apart from others: approve it once (a), or deny it (d).'
}

function confirmed(view: View, scope: ApprovalScope, { name, sequence }: Key): Pressed {
  const question = chosenOf(view)
  const shut = { ...view, asking: undefined }
  if (name === 'escape' || sequence === 'n' || sequence === 'q' || question === undefined) return { view: shut }
  if (name !== 'return' && name !== 'enter' && sequence !== 'y') return { view }
  return { view: shut, act: { act: 'answer', question, answer: { verb: 'approve', scope } } }
}

function typed(view: View, text: string, { name, ctrl, meta, sequence = '' }: Key): Pressed {
  const question = chosenOf(view)
  const shut = { ...view, asking: undefined }
  if (name === 'escape' || question === undefined) return { view: shut }
  const now = (next: string) => ({ view: { ...view, asking: { what: 'message' as const, text: next } } })
  if (name === 'return' || name === 'enter') {
    const message = text.trim()
    const answer: Answer = message === '' ? { verb: 'deny' } : { verb: 'deny', message }
    return { view: shut, act: { act: 'answer', question, answer } }
  }
  if (name === 'backspace') return now([...text].slice(0, -1).join(''))
  if (ctrl && name === 'u') return now('')
  const isText = !ctrl && !meta && sequence !== '' && !/\p{Cc}/u.test(sequence)
  return isText && text.length + sequence.length <= MAX_MESSAGE ? now(text + sequence) : { view }
}

import type { Answer } from './answer.js'
import type { Question } from './question.js'
import { type Asking, choice, chosenOf, type View } from './view.js'

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

/** What a key does. No answer is sent by one key alone, and none by what was pasted. */
export function press(view: View, key: Key, page: Page): Pressed {
  if (key.ctrl && key.name === 'c') return { view, act: { act: 'quit' } }
  if (key.name === 'paste-start' || key.name === 'paste-end')
    return { view: { ...view, pasting: key.name === 'paste-start' } }
  const calm = { ...view, notice: undefined }
  if (view.asking?.what === 'message') return typed(calm, view.asking, key)
  if (view.pasting) return { view }
  if (view.help) return { view: { ...calm, help: false } }
  if (view.asking !== undefined) return confirmed(calm, view.asking, key)
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

const ANSWERS: ReadonlyMap<string, Asking['what']> = new Map([
  ['a', 'once'],
  ['s', 'session'],
  ['A', 'always'],
  ['d', 'deny'],
  ['m', 'message'],
])

function asked(view: View, { sequence = '' }: Key): Pressed | undefined {
  const what = ANSWERS.get(sequence)
  if (what === undefined) return undefined
  const question = chosenOf(view)
  if (question === undefined)
    return { view: { ...view, notice: { text: 'No question is chosen: use ↑ or ↓.', tone: 'plain' } } }
  const blocked = blocker(view, question, what)
  if (blocked !== undefined) return { view: { ...view, notice: { text: blocked, tone: 'bad' } } }
  const asking: Asking = what === 'message' ? { what, text: '', armed: false } : { what, armed: false }
  return { view: { ...view, asking } }
}

function blocker(view: View, question: Question, what: Asking['what']): string | undefined {
  if (view.link !== 'connected') return 'The host is not there, so nothing can be answered now.'
  if (view.sending !== undefined) return 'An answer is on its way; press the key again after it.'
  const broad = what === 'session' || what === 'always'
  if (!broad || question.covers.length > 0) return undefined
  return 'This call cannot be told apart from others: approve it once (a), or deny it (d).'
}

/** Escape, or what a terminal makes of it together with the next key. */
function isEscape({ name, meta }: Key): boolean {
  return name === 'escape' || meta === true
}

function isEnter({ name }: Key): boolean {
  return name === 'return' || name === 'enter'
}

/** Enter answers; any other key goes back. */
function confirmed(view: View, { what, armed }: Exclude<Asking, { what: 'message' }>, key: Key): Pressed {
  const question = chosenOf(view)
  if (isEnter(key) && !armed) return { view }
  const shut = { ...view, asking: undefined }
  if (!isEnter(key) || question === undefined) return { view: shut }
  const answer: Answer = what === 'deny' ? { verb: 'deny' } : { verb: 'approve', scope: what }
  return { view: shut, act: { act: 'answer', question, answer } }
}

function typed(view: View, asking: Extract<Asking, { what: 'message' }>, key: Key): Pressed {
  const { text, armed } = asking
  const question = chosenOf(view)
  const shut = { ...view, asking: undefined }
  if (question === undefined || (isEscape(key) && !view.pasting)) return { view: shut }
  const now = (next: string) => ({ view: { ...view, asking: { ...asking, text: next } } })
  if (isEnter(key) && !view.pasting) {
    if (!armed) return { view }
    const blocked = blocker(view, question, 'message')
    if (blocked !== undefined) return { view: { ...view, notice: { text: blocked, tone: 'bad' } } }
    const message = text.trim()
    const answer: Answer = message === '' ? { verb: 'deny' } : { verb: 'deny', message }
    return { view: shut, act: { act: 'answer', question, answer } }
  }
  if (key.name === 'backspace') return now([...text].slice(0, -1).join(''))
  if (key.ctrl && key.name === 'u') return now('')
  const added = isEnter(key) || key.name === 'tab' ? ' ' : (key.sequence ?? '')
  const isText = !key.ctrl && !key.meta && added !== '' && !/\p{Cc}/u.test(added)
  return isText && text.length + added.length <= MAX_MESSAGE ? now(text + added) : { view }
}

import type { ApprovalScope } from '../../store/approvals.js'
import type { FeedEvent } from './feed.js'
import { endWords, nameOf, type Question } from './question.js'

export interface Notice {
  text: string
  tone: 'good' | 'bad' | 'plain'
}

/**
 * What the owner is being asked about the chosen question before an answer is sent. Not `armed` until it was there long enough to
 * be read: keys that were typed ahead, for something else, confirm nothing.
 */
export type Asking = { armed: boolean } & ({ what: ApprovalScope | 'deny' } | { what: 'message'; text: string })

/** All that the full screen shows. */
export interface View {
  /** Oldest first. */
  questions: readonly Question[]
  chosen: string | undefined
  /** First line of the chosen question on the screen. */
  top: number
  asking: Asking | undefined
  /** Id of the question whose answer is on its way. */
  sending: string | undefined
  help: boolean
  /** The terminal hands over what was pasted. */
  pasting: boolean
  notice: Notice | undefined
  link: 'connecting' | 'connected' | 'lost'
}

export function emptyView(): View {
  return {
    questions: [],
    chosen: undefined,
    top: 0,
    asking: undefined,
    sending: undefined,
    help: false,
    pasting: false,
    notice: undefined,
    link: 'connecting',
  }
}

export function chosenOf({ questions, chosen }: View): Question | undefined {
  return questions.find(({ id }) => id === chosen)
}

/** The chosen question never changes by itself under the owner's fingers: where it goes away, none is chosen. */
export function afterEvent(view: View, event: FeedEvent): View {
  switch (event.kind) {
    case 'connected':
      return {
        ...view,
        link: 'connected',
        notice: view.link === 'lost' ? { text: 'The host is back.', tone: 'good' } : view.notice,
      }
    case 'lost':
      // A message that is being written stays.
      return { ...view, link: 'lost', asking: view.asking?.what === 'message' ? view.asking : undefined }
    case 'asked': {
      const questions = [...view.questions, event.question]
      return view.questions.length > 0 ? { ...view, questions } : { ...view, questions, ...choice(event.question.id) }
    }
    case 'gone':
      return afterGone(view, event)
  }
}

function afterGone(view: View, { question, end }: Extract<FeedEvent, { kind: 'gone' }>): View {
  if (!view.questions.some(({ id }) => id === question.id)) return view
  const how = end === undefined ? 'deleted' : endWords(end)
  const notice: Notice = { text: `${nameOf(question)} was ${how} (not from here).`, tone: 'plain' }
  const left = without(view, question.id)
  return view.chosen === question.id ? { ...left, notice, ...choice(undefined) } : { ...left, notice }
}

/** After an answer from here the next question is chosen. */
export function afterAnswer(view: View, id: string, notice: Notice): View {
  const at = view.questions.findIndex((one) => one.id === id)
  const left = without(view, id)
  const next = left.questions[Math.min(Math.max(at, 0), left.questions.length - 1)]
  return { ...left, notice, ...(view.chosen === id ? choice(next?.id) : {}) }
}

/** The same question with what it would change by now. */
export function withFresh(view: View, fresh: Question): View {
  return { ...view, questions: view.questions.map((one) => (one.id === fresh.id ? fresh : one)), top: 0 }
}

export function choice(id: string | undefined): Pick<View, 'chosen' | 'top' | 'asking'> {
  return { chosen: id, top: 0, asking: undefined }
}

function without(view: View, id: string): View {
  return { ...view, questions: view.questions.filter((one) => one.id !== id) }
}

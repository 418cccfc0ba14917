import { createInterface } from 'node:readline'
import { KikiError } from '../../lib/errors.js'
import type { ApprovalScope } from '../../store/approvals.js'
import type { Output } from '../output.js'
import type { OwnerClient } from '../owner-client.js'
import { type Answer, type Answered, answerShown } from './answer.js'
import { type FeedEvent, followApprovals } from './feed.js'
import { endWords, nameOf, oneLine, type Question } from './question.js'
import { questionText } from './words.js'

export interface LineOptions {
  client: OwnerClient
  input: NodeJS.ReadableStream
  output: Output
  /** Sounds where somebody sits at a terminal. */
  bell: () => void
  /** Aborted by a signal, and by this at the end of the input: then nobody can answer here. */
  stop: AbortController
}

const USAGE = 'Answer with: approve ID, session ID, always ID, deny ID [MESSAGE]'

/**
 * `kiki approvals watch` without a terminal: each question in full as text or as a line of JSON, answers from the input, until that
 * ends. @throws as {@link followApprovals}.
 */
export async function watchLineByLine({ client, input, output, bell, stop }: LineOptions): Promise<void> {
  const waiting = new Map<string, Question>()
  // One after the other, so that an answer is about what was printed before it.
  let last: Promise<void> = Promise.resolve()
  const queue = (work: () => Promise<void>) => {
    last = last.then(work).catch((error: unknown) => stop.abort(error))
  }

  async function onEvent(event: FeedEvent): Promise<void> {
    if (event.kind === 'asked') waiting.set(event.question.id, event.question)
    // What was answered from here was told as that.
    if (event.kind === 'gone' && !waiting.delete(event.question.id)) return
    await output.line(eventValue(event), () => eventWords(event))
    if (event.kind === 'asked') bell()
  }

  /** `shown` is what had been printed when the line came. */
  async function onLine(line: string, shown: ReadonlyMap<string, Question>): Promise<void> {
    if (line.trim() === '') return
    try {
      const { id, answer } = readAnswer(line)
      const question = waiting.has(id) ? shown.get(id) : undefined
      if (question === undefined) throw new KikiError('not_found', `${id} does not wait here.`, { hint: USAGE })
      const { outcome, end } = await answerShown(client, question, answer)
      if (outcome === 'different') waiting.set(id, end)
      else waiting.delete(id)
      await output.line(answeredValue(id, outcome, end), () => answeredWords(id, outcome, end))
    } catch (error) {
      if (!(error instanceof KikiError)) throw error
      await output.line(refusedValue(error), () => oneLine([error.message, error.hint ?? ''].join(' ').trimEnd()))
    }
  }

  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
  lines.on('line', (line) => {
    const shown = new Map(waiting)
    queue(() => onLine(line, shown))
  })
  lines.on('close', () =>
    queue(async () => {
      if (!stop.signal.aborted) await output.note('Standard input has ended, so nobody can answer here any more.')
      stop.abort()
    }),
  )
  try {
    await followApprovals({ client, signal: stop.signal, on: (event) => queue(() => onEvent(event)) })
  } finally {
    lines.removeAllListeners('close')
    lines.close()
    await last
  }
  // A fault of this command itself, not its end.
  if (stop.signal.reason instanceof Error && stop.signal.reason.name !== 'AbortError') throw stop.signal.reason
}

const SCOPES: ReadonlyMap<string, ApprovalScope> = new Map([
  ['approve', 'once'],
  ['session', 'session'],
  ['always', 'always'],
])

/** @throws KikiError `invalid_arguments`. */
export function readAnswer(line: string): { id: string; answer: Answer } {
  const [, verb = '', id = '', rest = ''] = /^\s*(\w+)\s+(\S+)\s*(.*?)\s*$/.exec(line) ?? []
  const scope = SCOPES.get(verb)
  if (scope !== undefined && rest === '') return { id, answer: { verb: 'approve', scope } }
  if (verb === 'deny') return { id, answer: rest === '' ? { verb } : { verb, message: rest } }
  throw new KikiError('invalid_arguments', 'That is no answer.', { hint: USAGE })
}

function answeredValue(id: string, outcome: Answered['outcome'], end: Question): Record<string, unknown> {
  if (outcome === 'different') return { event: 'changed', approval: end }
  return { event: 'answered', id, changed: outcome === 'done', approval: end }
}

function answeredWords(id: string, outcome: Answered['outcome'], end: Question): string {
  if (outcome === 'different') {
    const head = `${id} was not answered: it would change something else by now. Look again, and answer again.`
    return `${head}\n\n${questionText(end)}\n`
  }
  const late = outcome === 'late' ? 'Too late, nothing was changed: ' : ''
  return `${late}${id} (${nameOf(end)}) was ${endWords(end)}.`
}

function refusedValue({ code, message, hint }: KikiError): Record<string, unknown> {
  return { event: 'refused', error: { code, message, ...(hint !== undefined && { hint }) } }
}

function eventValue(event: FeedEvent): Record<string, unknown> {
  if (event.kind === 'asked') return { event: 'asked', approval: event.question }
  if (event.kind === 'gone') return { event: 'gone', id: event.question.id, approval: event.end ?? null }
  return { event: event.kind }
}

function eventWords(event: FeedEvent): string {
  switch (event.kind) {
    case 'connected':
      return `Taking questions. ${USAGE}.`
    case 'lost':
      return 'The host is not there; this goes on when it is back.'
    case 'asked':
      return `\n${questionText(event.question)}\n\n${event.question.id} waits for your answer.`
    case 'gone': {
      const how = event.end === undefined ? 'deleted' : endWords(event.end)
      return `${event.question.id} (${nameOf(event.question)}) was ${how} (not from here).`
    }
  }
}

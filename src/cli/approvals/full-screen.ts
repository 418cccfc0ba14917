import { choosePlainReact } from '../../config/environment.js'
import { KikiError, messageOf, systemCode } from '../../lib/errors.js'
import type { OwnerClient } from '../owner-client.js'
import { type Answer, answerShown } from './answer.js'
import { type FeedEvent, followApprovals } from './feed.js'
import { layoutOf, type Size } from './layout.js'
import { type Act, type Key, press } from './press.js'
import { endWords, nameOf, type Question } from './question.js'
import { openTerminal } from './terminal.js'
import { afterAnswer, afterEvent, chosenOf, emptyView, type Notice, type View, withFresh } from './view.js'
import { type Line, questionLines } from './words.js'
import { wrapLines } from './wrap.js'

export interface FullScreenOptions {
  client: OwnerClient
  input: typeof process.stdin
  output: typeof process.stdout
  colors: boolean
  /** Aborted by a signal, and by this when the owner quits. */
  stop: AbortController
}

/** Milliseconds that a confirmation is there before Enter counts: longer than between two keys of somebody who types. */
const ARM_MS = 300
/** Milliseconds between two frames that differ only in ages. */
const TICK_MS = 1000

/** `kiki approvals watch` in a terminal, until the owner quits. @throws as {@link followApprovals}. */
export async function watchFullScreen({ client, input, output, colors, stop }: FullScreenOptions): Promise<void> {
  choosePlainReact()
  const { drawFrame } = await import('./draw.js')
  let view = emptyView()
  let heldBack: FeedEvent | undefined
  let arming: NodeJS.Timeout | undefined
  const fit = createFitter()
  const terminal = openTerminal({ input, output, onKey, onResize: draw })

  function draw(): void {
    const frame = fit(view, terminal.size())
    view = frame.view
    terminal.paint(drawFrame({ ...frame, now: Date.now(), colors }))
  }

  function show(next: View): void {
    if (next.asking?.what !== view.asking?.what) {
      clearTimeout(arming)
      arming = setTimeout(() => show(armed(view)), ARM_MS)
    }
    if (next.questions.length !== view.questions.length) terminal.title(titleOf(next.questions.length))
    view = next
    draw()
  }

  function onEvent(event: FeedEvent): void {
    if (event.kind === 'asked') terminal.bell()
    // Its answer is on its way from here: what came of that is told by the host's reply.
    if (event.kind === 'gone' && event.question.id === view.sending) heldBack = event
    else show(afterEvent(view, event))
  }

  function onKey(key: Key): void {
    const { layout, lines } = fit(view, terminal.size())
    const { view: next, act } = press(view, key, { rows: layout.detailRows, lines: lines.length })
    show(next)
    if (act?.act === 'quit') stop.abort()
    if (act?.act === 'answer') void send(act)
  }

  async function send({ question, answer }: Extract<Act, { act: 'answer' }>): Promise<void> {
    show({ ...view, sending: question.id })
    const next = await outcomeOf(client, question, answer)
    const now = { ...next(view), sending: undefined }
    show(heldBack === undefined ? now : afterEvent(now, heldBack))
    heldBack = undefined
  }

  const tick = setInterval(draw, TICK_MS)
  try {
    terminal.title(titleOf(0))
    draw()
    await followApprovals({ client, signal: stop.signal, on: onEvent })
  } finally {
    clearInterval(tick)
    clearTimeout(arming)
    terminal.close()
  }
}

function armed(view: View): View {
  return view.asking === undefined ? view : { ...view, asking: { ...view.asking, armed: true } }
}

/** What an answer that was sent makes of the view as it is by then. */
async function outcomeOf(client: OwnerClient, question: Question, answer: Answer): Promise<(view: View) => View> {
  try {
    const { outcome, end } = await answerShown(client, question, answer)
    if (outcome === 'different') return (view) => ({ ...withFresh(view, end), notice: DIFFERENT })
    return (view) => afterAnswer(view, question.id, answeredNotice(question, outcome, end))
  } catch (error) {
    // A refusal, or a host that went away in between; anything else is a fault of this program.
    if (!(error instanceof KikiError) && systemCode(error) === undefined) throw error
    return (view) => ({ ...view, notice: { text: messageOf(error), tone: 'bad' } })
  }
}

const DIFFERENT: Notice = {
  text: 'Not answered: it would change something else by now. Look again, then press the key again.',
  tone: 'bad',
}

function answeredNotice(question: Question, outcome: 'done' | 'late', end: Question): Notice {
  const words = `${nameOf(question)} was ${endWords(end)}`
  if (outcome === 'late') return { text: `Too late, nothing was changed: ${words}.`, tone: 'bad' }
  return { text: `${words}.`, tone: 'good' }
}

function titleOf(count: number): string {
  return count === 0 ? 'Kiki approvals' : `(${count}) Kiki approvals`
}

/** Fits a view into a window. The chosen question's broken lines are kept, since most frames differ elsewhere. */
function createFitter() {
  let last: { question: Question; columns: number; lines: readonly Line[] } | undefined
  function linesOf(question: Question | undefined, columns: number): readonly Line[] {
    if (question === undefined) return []
    if (last?.question !== question || last.columns !== columns)
      last = { question, columns, lines: wrapLines(questionLines(question), columns - 1) }
    return last.lines
  }
  return (view: View, size: Size) => {
    const layout = layoutOf(view, size)
    const lines = linesOf(chosenOf(view), layout.detailColumns)
    const top = Math.min(view.top, Math.max(0, lines.length - layout.detailRows))
    return { view: { ...view, top }, size, layout, lines }
  }
}

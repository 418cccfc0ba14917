import { harmless } from '../../lib/visible.js'
import { clientWords, nameOf, oneLine, type Question } from './question.js'

export type Tone = 'plain' | 'title' | 'heading' | 'dim' | 'add' | 'remove' | 'hunk' | 'warn'

/** One line of a question; what stands in `lead` is Kiki's own, so that no argument can pose as anything else. */
export interface Line {
  lead: string
  text: string
  tone: Tone
}

/** Before every line of what a client sent. */
export const GUTTER = '  │ '
/** Before the rest of such a line where it had to be broken. */
export const GUTTER_ON = '  ┊ '
const LABEL_COLUMNS = 11

/** Everything that the owner needs to decide, in full (AP-03); nothing in it can steer a terminal (GU-32). */
export function questionLines(question: Question): Line[] {
  const blank: Line = { lead: '', text: '', tone: 'plain' }
  return [
    { lead: '', text: nameOf(question), tone: 'title' as const },
    blank,
    ...factLines(question),
    ...commandLines(question).flatMap((line, index) => (index === 0 ? [blank, line] : [line])),
    ...previewLines(question).flatMap((line, index) => (index === 0 ? [blank, line] : [line])),
    blank,
    { lead: '', text: 'Arguments, exactly as they will be used', tone: 'heading' as const },
    ...question.shown.flatMap(({ name, value }) => [
      { lead: '  ', text: oneLine(name), tone: 'dim' as const },
      ...content(value),
    ]),
    blank,
    ...answerLines(question),
  ]
}

/** The same as plain text. */
export function questionText(question: Question): string {
  return questionLines(question)
    .map(({ lead, text }) => (lead + text).trimEnd())
    .join('\n')
}

function factLines(question: Question): Line[] {
  const { session, connection, effect, why } = question
  const title = session.title === null ? '' : `“${oneLine(session.title)}” `
  return [
    fact('Client', `${clientWords(question)}, connection ${connection.id}`),
    fact('Session', `${title}${session.ref}${session.mode === null ? '' : `, mode ${session.mode}`}`),
    fact('Workspace', oneLine(session.workspace ?? 'gone')),
    fact('Effect', effect),
    fact('Asks', `${oneLine(why.reason)} (${oneLine(why.by)})`),
  ]
}

function answerLines(question: Question): Line[] {
  const { asked_at, expires_at, id, operation } = question
  return [
    { lead: '', text: 'Your answer', tone: 'heading' },
    ...coverLines(question),
    fact('Asked', `${asked_at ?? ''}${expires_at === null ? '' : `, denied by itself at ${expires_at}`}`),
    fact('Id', `${id}, operation ${operation}`),
  ]
}

function coverLines(question: Question): Line[] {
  if (question.covers.length === 0)
    return [fact('Approving', 'covers this one call only: it cannot be told apart from others')]
  return [
    fact('Approving', 'once: this call only'),
    ...coverWords(question, 'session').map((text) => fact('', `session: ${text}`)),
    ...coverWords(question, 'always').map((text) => fact('', `always: ${text}`)),
  ]
}

/** What approving for more than once would cover, a line each: the kinds in this session, or the rules that are added (AP-04). */
export function coverWords(question: Question, scope: 'session' | 'always'): string[] {
  const { covers, connection, session } = question
  if (scope === 'session') return covers.map(({ kind }) => oneLine(kind))
  const place = `for ${oneLine(connection.name ?? connection.id)} in ${oneLine(session.workspace ?? session.ref)}`
  return covers.map(({ rule }) => `allow ${oneLine(rule)} ${place}`)
}

/** The parsed command with its classes (CC-03). */
function commandLines({ command, unconfined }: Question): Line[] {
  if (command === null) return []
  const { commands, classes, opaque } = command
  return [
    { lead: '', text: 'The command, taken apart', tone: 'heading' },
    ...commands.flatMap(({ text, classes: own, via }) => {
      const by = via.length === 0 ? '' : ` (run by ${via.map(oneLine).join(', ')})`
      return [...content(text), { lead: '    ', text: `${own.map(oneLine).join(', ')}${by}`, tone: 'hunk' as const }]
    }),
    ...(opaque === undefined
      ? []
      : [{ lead: '  ', text: `Not all of it can be known: ${oneLine(opaque)}`, tone: 'warn' as const }]),
    { lead: '  ', text: `Altogether: ${classes.map(oneLine).join(', ')}`, tone: 'plain' },
    ...(unconfined
      ? [{ lead: '  ', text: 'It would run without a sandbox, with your own rights.', tone: 'warn' as const }]
      : []),
  ]
}

function previewLines({ preview }: Question): Line[] {
  if (preview === null) return []
  const lines = content(preview)
  const body = lines.findIndex(({ text }) => text.startsWith('@@'))
  const toned = lines.map((line, index) =>
    body === -1 || index < body ? line : { ...line, tone: diffTone(line.text) },
  )
  return [{ lead: '', text: 'What it would change now', tone: 'heading' }, ...toned]
}

function diffTone(line: string): Tone {
  if (line.startsWith('+')) return 'add'
  if (line.startsWith('-')) return 'remove'
  return line.startsWith('@@') ? 'hunk' : 'plain'
}

function content(text: string): Line[] {
  return harmless(text)
    .split('\n')
    .map((line) => ({ lead: GUTTER, text: expandTabs(line), tone: 'plain' }))
}

/** A tab is shown as one: in a Makefile it is not the same as spaces. */
function expandTabs(line: string): string {
  return line.replaceAll('\t', '⇥   ')
}

function fact(label: string, text: string): Line {
  return { lead: label.padEnd(LABEL_COLUMNS), text, tone: 'plain' }
}

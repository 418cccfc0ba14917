import { harmless } from '../../lib/visible.js'
import type { ApprovalScope } from '../../store/approvals.js'
import type { Question } from './question.js'
import { chosenOf, type View } from './view.js'
import { coverWords, type Line } from './words.js'
import { wrapLines } from './wrap.js'

export interface Size {
  columns: number
  rows: number
}

export interface Layout {
  /** List beside the question, not above it. */
  wide: boolean
  listColumns: number
  listRows: number
  detailColumns: number
  detailRows: number
  footer: Line[]
}

/** Below this nothing can be read. */
export const LEAST: Size = { columns: 60, rows: 16 }
const WIDE = 100
/** Header, the rule below it, the rule below the question, and the line for notices. */
const FIXED_ROWS = 4
/** Of the list above the question. */
const MOST_LISTED = 5

export function layoutOf(view: View, { columns, rows }: Size): Layout {
  const wide = columns >= WIDE
  const footer = wrapLines(footerLines(view, { columns, rows }), columns - 1)
  const body = Math.max(3, rows - FIXED_ROWS - footer.length)
  if (wide) {
    const listColumns = Math.min(44, Math.floor(columns * 0.32))
    return { wide, listColumns, listRows: body, detailColumns: columns - listColumns - 2, detailRows: body, footer }
  }
  if (view.questions.length === 0)
    return { wide, listColumns: columns, listRows: 0, detailColumns: columns, detailRows: body, footer }
  const listRows = Math.max(1, Math.min(view.questions.length, MOST_LISTED, Math.floor(body / 3)))
  return { wide, listColumns: columns, listRows, detailColumns: columns, detailRows: body - listRows - 1, footer }
}

/** First item of a list whose chosen one must be seen. */
export function firstListed(view: View, items: number): number {
  const at = view.questions.findIndex(({ id }) => id === view.chosen)
  return Math.max(0, Math.min(at - Math.floor(items / 2), view.questions.length - items))
}

const VERBS: Record<ApprovalScope | 'deny', string> = {
  once: 'Approve once: this call only.',
  session: 'Approve for this session. From now on it does not ask for:',
  always: 'Approve always. These rules are added, until you remove them:',
  deny: 'Deny: nothing of it runs. With m instead the client gets a message.',
}

function footerLines(view: View, { columns, rows }: Size): Line[] {
  const plain = (text: string): Line => ({ lead: ' ', text, tone: 'plain' })
  const question = chosenOf(view)
  const { asking } = view
  if (asking === undefined || question === undefined)
    return [{ lead: ' ', text: keyWords(question, columns), tone: 'dim' }]
  const verb = asking.what === 'deny' || asking.what === 'message' ? 'denies' : 'approves'
  // Said once it is so.
  const how = { lead: ' ', text: asking.armed ? `Enter ${verb} · Esc goes back` : '…', tone: 'dim' as const }
  if (asking.what === 'message')
    return [{ lead: ' Deny, and tell the client: ', text: `${harmless(asking.text)}█`, tone: 'title' }, how]
  const covered = asking.what === 'session' || asking.what === 'always' ? coverWords(question, asking.what) : []
  return [
    { lead: ' ', text: VERBS[asking.what], tone: 'title' },
    ...listed(covered, Math.max(2, Math.floor(rows / 4))).map(plain),
    how,
  ]
}

function listed(words: string[], most: number): string[] {
  if (words.length <= most) return words.map((text) => `• ${text}`)
  const rest = `and ${words.length - most + 1} more, which stand in full under “Your answer”`
  return [...words.slice(0, most - 1), rest].map((text) => `• ${text}`)
}

function keyWords(question: Question | undefined, columns: number): string {
  if (question === undefined) return '↑↓ choose · ? help · q quit'
  const more = question.covers.length === 0 ? '' : 's session · A always · '
  const deny = columns < 70 ? 'd m deny' : 'd deny · m message'
  return `a once · ${more}${deny} · ? help · q quit`
}

import { harmless } from '../../lib/visible.js'
import { targetOf } from '../../owner/operation-target.js'
import { type OwnerClient, resultOf } from '../owner-client.js'

/** One question with its preview, as the owner API shows it. */
export type Question = Awaited<ReturnType<typeof readQuestion>>

/** @throws KikiError `not_found`. */
export function readQuestion({ api }: OwnerClient, id: string) {
  return resultOf(api.approvals[':id'].$get({ param: { id } }))
}

/** Text for one line: nothing in it hides, breaks the line or steers the terminal. */
export function oneLine(text: string): string {
  return harmless(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

/** What a call is about, for a list. */
export function targetWords(question: Pick<Question, 'arguments'>): string {
  const { command } = question.arguments
  return oneLine(targetOf(question.arguments) ?? (typeof command === 'string' ? command : ''))
}

/** Tool and target: the name of a question for people. */
export function nameOf(question: Pick<Question, 'tool' | 'arguments'>): string {
  return `${oneLine(question.tool)} ${targetWords(question)}`.trim()
}

/** Whose call it is: the application by its own word, and the connection by the owner's. */
export function clientWords({ client, connection }: Pick<Question, 'client' | 'connection'>): string {
  const name = oneLine(connection.name ?? connection.id)
  return client === null ? name : `${name} (${oneLine(client.name)} ${oneLine(client.version)})`
}

export function ageWords(since: string | null, now: number): string {
  const seconds = since === null ? 0 : Math.max(0, Math.floor((now - Date.parse(since)) / 1000))
  if (seconds < 60) return `${seconds}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}

type Ended = Pick<Question, 'answer' | 'scope' | 'message' | 'status'> & { answered_by?: string | null }

const SCOPE_WORDS = { once: 'once', session: 'for its session', always: 'always' }

/** How a question ended, and through whom: a part of a sentence (AP-06). */
export function endWords({ answer, scope, message, answered_by, status }: Ended): string {
  if (answer === 'approved') return `approved ${scope === null ? '' : `${SCOPE_WORDS[scope]} `}by the owner`
  if (answer === 'denied' && answered_by === 'expiry') return 'denied, because nobody answered in time'
  if (answer === 'denied') return `denied by the owner${message === null ? '' : `: ${oneLine(message)}`}`
  return status === 'cancelled' ? 'cancelled before anybody answered' : `no longer waiting (${status})`
}

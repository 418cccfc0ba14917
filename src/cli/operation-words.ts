import { beginning, facts, type Output, printable, textOf } from './output.js'

/** Characters of a result, and of the arguments, that a person is shown. */
const RESULT_CHARS = 4_000
const ARGUMENT_CHARS = 1_000

/** What is made into words; any other field is shown as it is. */
interface Shown {
  status: string
  client: { name: string; version: string } | null
  decision: { kind: string; by: string; unconfined?: true }
  /** A short form of the arguments, for lists. */
  target: string | null
  arguments: unknown
  note: Note | null
  result: string | null
}

/** What the owner found out about a call whose outcome is unknown (OP-16). */
interface Note {
  found: 'happened' | 'did_not_happen'
  note: string
  noted_at: string | null
}

export function noteWords(note: Note | null): string | null {
  if (note === null) return null
  const found = note.found === 'happened' ? 'it happened' : 'it did not happen'
  return `${found}${note.note === '' ? '' : `: ${note.note}`}${note.noted_at === null ? '' : ` (${note.noted_at})`}`
}

/** One call for a person: what of it is long is cut, and `whole` named as the command that shows more. */
export function operationWords(one: Shown, whole: string, { columns }: Pick<Output, 'columns'>): string {
  const { result, target: _, ...operation } = one
  const args = beginning(textOf(one.arguments), ARGUMENT_CHARS)
  const shown = facts(
    {
      ...operation,
      client: one.client === null ? null : `${one.client.name} ${one.client.version}`,
      decision: decisionWords(one),
      note: noteWords(one.note),
      arguments: args.whole ? args.text : `${args.text}…`,
    },
    columns,
  )
  const answer = result === null ? undefined : beginning(result, RESULT_CHARS)
  const cut = [
    ...(answer?.whole === false ? [`the first ${RESULT_CHARS} characters of the result`] : []),
    ...(args.whole ? [] : [`the first ${ARGUMENT_CHARS} of the arguments`]),
  ]
  const rest = cut.length === 0 ? [] : [`Shown: ${cut.join(' and ')}. More: ${whole}`]
  return [shown, ...(answer ? [printable(answer.text, { lines: true })] : []), ...rest].join('\n')
}

const KINDS: Record<string, string> = { allow: 'allowed', ask: 'put to the owner', deny: 'denied' }

const REASONS: Record<string, string> = {
  owner: 'the owner asked for it',
  'effect.read': 'it only reads',
  'connection.ceiling': "by the connection's ceiling",
  'session.mode': "by the session's mode",
  'profile.mode': "by the profile's mode",
}

/** That a call was allowed says nothing about how it ended, so a failure is said with it. */
function decisionWords({ decision: { kind, by, unconfined }, status }: Shown): string {
  const then = kind === 'allow' && status === 'failed' ? ', then failed' : ''
  const where = unconfined === true ? ', without a sandbox' : ''
  return `${KINDS[kind] ?? kind}${then} (${REASONS[by] ?? by})${where}`
}

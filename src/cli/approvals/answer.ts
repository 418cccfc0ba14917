import type { ApprovalScope } from '../../store/approvals.js'
import { type OwnerClient, resultOf } from '../owner-client.js'
import { type Question, readQuestion } from './question.js'

export type Answer = { verb: 'approve'; scope: ApprovalScope } | { verb: 'deny'; message?: string | undefined }

/** `different`: nothing was answered, because the call would not change what the owner was shown. */
export type Answered = { outcome: 'done' | 'late'; end: Question } | { outcome: 'different'; end: Question }

/**
 * Gives the owner's answer to a question as they saw it. A yes counts only for the change that was shown: files may have changed
 * under it since.
 * @throws KikiError the host's refusal.
 */
export async function answerShown(client: OwnerClient, shown: Question, answer: Answer): Promise<Answered> {
  if (answer.verb === 'approve') {
    const now = await readQuestion(client, shown.id)
    const waits = now.status === 'waiting_approval'
    if (waits && now.preview !== shown.preview) return { outcome: 'different', end: now }
  }
  const end = await sendAnswer(client, shown.id, answer)
  return { outcome: end.changed ? 'done' : 'late', end: { ...end, preview: null } }
}

/** @returns the question as it stands after it; `changed` is false where somebody was faster (AP-06). */
export function sendAnswer({ api }: OwnerClient, id: string, answer: Answer) {
  const param = { id }
  if (answer.verb === 'approve')
    return resultOf(api.approvals[':id'].approve.$post({ param, json: { scope: answer.scope } }))
  const json = answer.message === undefined ? {} : { message: answer.message }
  return resultOf(api.approvals[':id'].deny.$post({ param, json }))
}

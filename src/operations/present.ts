import {
  type ContentBlock,
  describeCall,
  KEPT_SCHEME,
  type KeptBytes,
  type LongText,
  type NextCall,
  type OutcomeBlock,
  type Reply,
  safeCut,
} from '../lib/content.js'
import type { KikiError } from '../lib/errors.js'
import type { OperationRow, OperationStatus } from '../store/operations.js'
import type { Outcome } from './outcome.js'

export interface InlineLimits {
  /** Characters of text (OP-13). */
  text: number
  /** Bytes of media (OP-13). */
  media: number
}

/** What every reply about an operation says of it. */
export interface OperationFacts {
  operationId: string
  sessionRef: string
}

/** A refusal: nothing was run and no key was used up (spec/control.md, "Refusal"). */
export function refusal(error: KikiError): Reply {
  const { code, message, hint, data } = error
  return {
    isError: true,
    content: [{ type: 'text', text: errorText({ code, message, hint }) }],
    _meta: { 'kiki/error': compact({ code, message, hint, data }) },
  }
}

/** The reply to a call that is over: its result, cut to the inline limits, or its failure. */
export function ended(operation: OperationFacts, outcome: Outcome, limits: InlineLimits): Reply {
  const { content, next } = cutContent(operation.operationId, outcome.content, limits)
  const reply: Reply = {
    content,
    _meta: {
      'kiki/operation': compact({
        operation_id: operation.operationId,
        status: outcome.status,
        session_ref: operation.sessionRef,
        effects_possible: outcome.effectsPossible,
        next,
      }),
    },
  }
  if (outcome.facts !== undefined) reply._meta['kiki/result'] = outcome.facts
  if (outcome.error !== undefined) {
    reply.isError = true
    reply._meta['kiki/error'] = compact({ ...outcome.error })
  }
  return reply
}

/** The same reply for a repeated key: it says first that nothing ran now (OP-02). */
export function replayed(row: Pick<OperationRow, 'started_at' | 'accepted_at' | 'tool'>, reply: Reply): Reply {
  const when =
    row.started_at === null
      ? `was accepted at ${new Date(row.accepted_at).toISOString()} and never ran`
      : `ran at ${new Date(row.started_at).toISOString()}`
  const line =
    `Replayed: nothing ran now. This is the saved result of the same ${row.tool} call, which ${when}. ` +
    'Use a new idempotency key to run it again.'
  const operation = { ...(reply._meta['kiki/operation'] as object), replayed: true }
  return {
    ...reply,
    content: [{ type: 'text', text: line }, ...reply.content],
    _meta: { ...reply._meta, 'kiki/operation': operation },
  }
}

export interface ReceiptInput extends OperationFacts {
  status: Exclude<OperationStatus, 'completed' | 'failed' | 'cancelled' | 'outcome_unknown'>
  tool: string
  createdAt: number
  outputSoFar: string
}

/** For work that is not finished (spec/control.md, "Receipt"). */
export function receipt(input: ReceiptInput): Reply {
  const next: NextCall = { tool: 'kiki_operation', arguments: { action: 'wait', operation_id: input.operationId } }
  const message = {
    accepted: `${input.tool} is accepted and waits for its turn.`,
    running: `${input.tool} is still running.`,
    waiting_approval: `${input.tool} waits for the owner's approval.`,
  }[input.status]
  const advice =
    input.status === 'waiting_approval'
      ? 'Tell the user that their approval is needed in Kiki, then call'
      : 'Do not repeat the call; call'
  const how = `${advice} kiki_operation with ${JSON.stringify(next.arguments)} to wait for the result.`
  const receiptFacts = {
    operation_id: input.operationId,
    status: input.status,
    tool: input.tool,
    session_ref: input.sessionRef,
    created_at: new Date(input.createdAt).toISOString(),
    message,
    output_so_far: input.outputSoFar,
    next,
  }
  const output = input.outputSoFar === '' ? '' : `\nOutput so far:\n${input.outputSoFar}`
  return {
    content: [{ type: 'text', text: `${message} ${how}${output}` }],
    structuredContent: receiptFacts,
    _meta: {
      'kiki/operation': { operation_id: input.operationId, status: input.status, session_ref: input.sessionRef },
    },
  }
}

/** A refusal or failure in words. A message of several lines may quote a file, so its hint stands on a line of its own. */
export function errorText({
  code,
  message,
  hint,
}: {
  code: string
  message: string
  hint?: string | undefined
}): string {
  if (hint === undefined) return `${code}: ${message}`
  return `${code}: ${message}${message.includes('\n') ? '\n' : ' '}${hint}`
}

/** Whether a result passes the inline limits or has more than is sent, so that it must be saved to be paged (OP-13). */
export function passesLimits(content: readonly OutcomeBlock[], limits: InlineLimits): boolean {
  let text = 0
  let media = 0
  for (const block of content) {
    if (block.type === 'kept' || isNamed(block)) return true
    const own = textOf(block)
    if (own !== undefined) text += own.length
    else media += mediaBytes(block)
  }
  return text > limits.text || media > limits.media
}

/** The reference that a resource goes by is a promise that it is there. */
function isNamed(block: OutcomeBlock): boolean {
  return block.type === 'resource' && block.resource.uri.startsWith(KEPT_SCHEME)
}

function cutContent(
  id: string,
  content: readonly OutcomeBlock[],
  limits: InlineLimits,
): { content: ContentBlock[]; next?: NextCall } {
  if (!passesLimits(content, limits))
    return { content: content.flatMap((block) => (block.type === 'kept' ? [] : [whole(block)])) }
  // What a tool says beside a long result, such as how a command ended, is never what is left out.
  let textLeft = Math.max(limits.text - shortText(content), Math.floor(limits.text / 2))
  let mediaLeft = limits.media
  let next: NextCall | undefined
  const cut = content.map((block, part): ContentBlock | undefined => {
    if (block.type === 'kept') return undefined
    const text = textOf(block)
    if (text === undefined) {
      mediaLeft -= mediaBytes(block)
      if (mediaLeft >= 0) return whole(block)
      const call = readCall(id, part, 0)
      next ??= call
      return {
        type: 'text',
        text: `[${mediaBytes(block)} bytes of media are left out here. Page them with ${describeCall(call)}]`,
      }
    }
    if (text.length <= SHORT_CHARS) return whole(block)
    if (text.length <= textLeft) {
      textLeft -= text.length
      return whole(block)
    }
    const { shown, call } = headAndTail(id, part, text, textLeft)
    textLeft = 0
    next ??= call
    return { type: 'text', text: shown }
  })
  const sent = cut.filter((block) => block !== undefined)
  return next === undefined ? { content: sent } : { content: sent, next }
}

/** Text of a block that is always shown whole, in characters. */
const SHORT_CHARS = 600

function shortText(content: readonly OutcomeBlock[]): number {
  return content.reduce((sum, block) => {
    const length = block.type === 'kept' ? 0 : (textOf(block)?.length ?? 0)
    return length <= SHORT_CHARS ? sum + length : sum
  }, 0)
}

function headAndTail(id: string, part: number, text: TextSource, room: number): { shown: string; call: NextCall } {
  const start = text.read(0, Math.floor((room * 2) / 3) + 1)
  const head = start.slice(0, safeCut(start, start.length - 1))
  const tail = tailFrom(text, head.length, text.length - (room - head.length))
  const call = readCall(id, part, head.length)
  const left = text.length - head.length - tail.length
  const marker = `\n[… ${left} of ${text.length} characters are left out here. The whole result is saved: page it with ${describeCall(call)} …]\n`
  return { shown: head + marker + tail, call }
}

/** From there on, or one unit before where it would split a pair; never what the head shows. */
function tailFrom(text: TextSource, head: number, from: number): string {
  if (from <= head) return text.read(head, text.length)
  const end = text.read(from - 1, text.length)
  return end.slice(safeCut(end, 1))
}

function readCall(id: string, part: number, offset: number): NextCall {
  return { tool: 'kiki_operation', arguments: { action: 'read', operation_id: id, part, offset } }
}

type TextSource = Pick<LongText, 'length' | 'read'>

function textOf(block: OutcomeBlock): TextSource | undefined {
  if (block.type === 'long_text') return block
  const text =
    block.type === 'text'
      ? block.text
      : block.type === 'resource' && 'text' in block.resource
        ? block.resource.text
        : undefined
  return text === undefined ? undefined : { length: text.length, read: (start, end) => text.slice(start, end) }
}

/** A block that is answered as it is. */
function whole(block: Exclude<OutcomeBlock, KeptBytes>): ContentBlock {
  return block.type === 'long_text' ? { type: 'text', text: block.read(0, block.length) } : block
}

function mediaBytes(block: OutcomeBlock): number {
  if (block.type === 'image' || block.type === 'audio') return Buffer.byteLength(block.data, 'base64')
  return block.type === 'resource' && 'blob' in block.resource ? Buffer.byteLength(block.resource.blob, 'base64') : 0
}

/** Without the keys whose value is undefined. */
function compact(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

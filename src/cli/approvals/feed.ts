import { setTimeout as delay } from 'node:timers/promises'
import { KikiError, systemCode } from '../../lib/errors.js'
import { type OwnerClient, resultOf } from '../owner-client.js'
import { type Question, readQuestion } from './question.js'
import { sentEvents } from './sse.js'

/** What a watcher is told, one after the other. */
export type FeedEvent =
  /** From now on calls that need an answer wait. Questions that went meanwhile are told as gone, fresh ones as asked. */
  | { kind: 'connected' }
  | { kind: 'lost' }
  | { kind: 'asked'; question: Question }
  /** `end` is how it ended; undefined where it was deleted. */
  | { kind: 'gone'; question: Question; end: Question | undefined }

export interface FeedOptions {
  client: OwnerClient
  signal: AbortSignal
  on: (event: FeedEvent) => void
}

/** Milliseconds between two looks for a host that is not there. */
const LOOK_EVERY_MS = 500

/**
 * Takes questions until `signal` is aborted: while it is connected, calls that need an approval wait (AP-01). A host that ends is
 * waited for, however long that takes.
 * @throws KikiError `upstream_unavailable` where no host runs at the beginning, and the host's own refusals.
 */
export async function followApprovals({ client, signal, on }: FeedOptions): Promise<void> {
  const known = new Map<string, Question>()
  for (let connected = false; !signal.aborted; ) {
    try {
      await followOnce(client, signal, known, (event) => {
        connected = true
        on(event)
      })
    } catch (error) {
      if (signal.aborted) return
      const away = error instanceof KikiError && error.code === 'upstream_unavailable'
      if (!connected || !(away || isBroken(error))) throw error
    }
    if (signal.aborted) return
    on({ kind: 'lost' })
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined)
  }
}

async function followOnce(
  client: OwnerClient,
  signal: AbortSignal,
  known: Map<string, Question>,
  on: FeedOptions['on'],
): Promise<void> {
  const stream = await client.api.events.$get({ query: { approvals: '1' } }, { init: { signal } })
  if (!stream.ok || stream.body === null) {
    await resultOf(Promise.resolve(stream as Pick<Response, 'ok' | 'status' | 'json'>))
    return
  }
  for await (const { event, data } of sentEvents(stream.body)) {
    if (event === 'ready') on({ kind: 'connected' })
    if (event === 'ready' || event === 'approval.changed' || concerns(event, data, known)) await look(client, known, on)
  }
}

/** An operation that ends without an answer (cancelled, revoked) takes its question with it. */
function concerns(event: string, data: string, known: Map<string, Question>): boolean {
  if (event !== 'operation.changed') return false
  const { operationId } = JSON.parse(data) as { operationId: string }
  return [...known.values()].some(({ operation }) => operation === operationId)
}

/** Compares what waits with what is known; the list is the truth, events only say when to look. */
async function look(client: OwnerClient, known: Map<string, Question>, on: FeedOptions['on']): Promise<void> {
  const { approvals } = await resultOf(client.api.approvals.$get())
  const waiting = new Set(approvals.map(({ id }) => id))
  for (const [id, question] of known) {
    if (waiting.has(id)) continue
    known.delete(id)
    on({ kind: 'gone', question, end: await unlessDeleted(readQuestion(client, id)) })
  }
  for (const id of waiting) {
    if (known.has(id)) continue
    const question = await unlessDeleted(readQuestion(client, id))
    // Answered between the two looks: its own event follows.
    if (question?.status !== 'waiting_approval') continue
    known.set(id, question)
    on({ kind: 'asked', question })
  }
}

async function unlessDeleted(reading: Promise<Question>): Promise<Question | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof KikiError && error.code === 'not_found') return undefined
    throw error
  }
}

/** A stream that ends in the middle is not a refusal: the host has gone. */
function isBroken(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(systemCode(error) ?? '')
}

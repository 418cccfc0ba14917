import { type CallResult, connectClient, type Era, meta, type TestClient } from '../helpers/clients.js'
import type { Deed } from './deeds.js'

/** Where the host is now; replaced at every start. */
export interface Switchboard {
  /** Resolves once a host is ready. */
  up(): Promise<void>
  home: string
  connection: string
  session: string
}

const OVER = ['completed', 'failed', 'cancelled', 'outcome_unknown']

/** One client that keeps its bridge as long as that lives, and connects again when the bridge has ended. */
export function createMember(board: Switchboard, era: Era) {
  let client: Promise<TestClient> | undefined
  const open = async () => {
    for (;;) {
      await board.up()
      try {
        return await connectClient(board, board.connection, era, {
          session: board.session,
          args: ['--no-start'],
          quiet: true,
        })
      } catch {
        // The host was killed meanwhile: the client is started again once there is one.
      }
    }
  }
  return {
    /** One attempt: its result, or undefined where the transport failed and nothing was answered. */
    async attempt(deed: Deed): Promise<CallResult | undefined> {
      client ??= open()
      const mine = client
      const kiki = { idempotency_key: deed.key, session_ref: board.session }
      try {
        return await (await mine).call(deed.tool, { ...deed.args, _kiki: kiki })
      } catch (error) {
        if (/closed|not connected|EPIPE/i.test(String(error)) && client === mine) {
          client = undefined
          await (await mine).close()
        }
        await board.up()
        return undefined
      }
    },
    async open(): Promise<void> {
      client ??= open()
      await client
    },
    async close(): Promise<void> {
      await (await client)?.close()
    },
  }
}

export type Member = ReturnType<typeof createMember>

/**
 * Repeats the call with its key until it is answered as over, as a careful client does.
 * @throws when Kiki refuses it: no call of these tests may be refused.
 */
export async function carryOut(member: Member, deed: Deed): Promise<CallResult> {
  for (;;) {
    const result = await member.attempt(deed)
    if (result === undefined) continue
    const operation = meta<{ operation_id: string; status: string } | undefined>(result, 'kiki/operation')
    if (operation === undefined) throw new Error(`${deed.key} was refused: ${JSON.stringify(result)}`)
    if (!OVER.includes(operation.status)) continue
    deed.answer = { operationId: operation.operation_id, status: operation.status, content: savedContent(result) }
    return result
  }
}

/** The content without the line that says that it is a replay (OP-02). */
export function savedContent(result: CallResult): unknown {
  return isReplay(result) ? result.content.slice(1) : result.content
}

export function isReplay(result: CallResult): boolean {
  return meta<{ replayed?: boolean } | undefined>(result, 'kiki/operation')?.replayed === true
}

import type { z } from 'zod'
import { inlineWait, keyFor, withoutReplay } from '../calls/steps.js'
import type { Reply } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { limitsOf } from '../operations/operations.js'
import type { ControlCall, ControlDeps } from './control.js'
import type { saveTextArguments } from './schemas.js'

type Call = ControlCall<z.output<typeof saveTextArguments>>

/** Saves only what the client supplies, as external and unverified (TX-01). */
export async function saveText(deps: ControlDeps, { caller, connection, args, request }: Call): Promise<Reply> {
  const { _kiki, session_ref, ...given } = args
  const { key, made } = keyFor('kiki_save_text', connection, _kiki)
  const session = deps.sessions.resolve(caller, session_ref ?? _kiki?.session_ref)
  deps.store.commits.flush()
  for (const id of given.related_operations) {
    if (deps.store.operations.get(id)?.session_ref !== session.ref) {
      throw new KikiError('operation_unavailable', `${id} is not an operation of this session.`, {
        hint: 'related_operations may name up to 100 operations of the same session.',
      })
    }
  }
  const claim = await deps.operations.claim({
    connection,
    session,
    tool: 'kiki_save_text',
    effect: 'control',
    args: given,
    key,
    client: caller.client,
    decision: { kind: 'allow', by: 'control', reason: 'It saves only what the client supplies.' },
    lanes: [],
  })
  const limits = limitsOf(connection)
  if (claim.kind === 'over') return deps.operations.replay(claim.row, limits)
  if (claim.kind === 'new') {
    void deps.operations.run(claim.live, async (live) => {
      const id = newId('txt', deps.clock.now())
      await deps.store.commits.durable(() =>
        deps.store.savedTexts.insert({
          id,
          connection_id: connection.id,
          session_ref: session.ref,
          operation_id: live.id,
          kind: given.kind,
          title: given.title,
          body: given.text,
          related: JSON.stringify(given.related_operations),
          created_at: deps.clock.now(),
        }),
      )
      const text = `Saved "${given.title}" (${given.kind}, ${given.text.length} characters) as ${id}; the owner sees it as external, unverified text.`
      return {
        content: [{ type: 'text', text }],
        facts: { saved_text_id: id, kind: given.kind, characters: given.text.length },
      }
    })
  }
  const reply = await deps.operations.answer(claim.live, inlineWait(connection, _kiki?.wait_ms), limits, request)
  return made ? withoutReplay(reply) : reply
}

import { Hono } from 'hono'
import { z } from 'zod'
import { describeScript, scriptOf } from '../calls/command.js'
import { previewOperation } from '../calls/preview.js'
import { jsonBody } from '../http/json-body.js'
import { visible } from '../lib/visible.js'
import { type Asked, SCOPES } from '../store/approvals.js'
import { findNative } from '../tools/catalog.js'
import type { OwnerEnv } from './auth.js'
import { time } from './connections.js'
import type { OwnerDeps } from './deps.js'

/** Characters of a message to the client. */
const MAX_MESSAGE = 2000

const approveSchema = z.strictObject({ scope: z.enum(SCOPES).default('once') })
const denySchema = z.strictObject({ message: z.string().trim().min(1).max(MAX_MESSAGE).optional() })

/** `/approvals`: what waits for the owner, and the answers (AP-03 to AP-06, CL-09). Mounted for the owner only (AP-07). */
export function approvalRoutes(deps: OwnerDeps) {
  const { approvals } = deps
  return new Hono<OwnerEnv>()
    .get('/', async (c) => {
      const waiting = await Promise.all(approvals.waiting().map((asked) => approvalView(deps, asked)))
      return c.json({ approvals: waiting, consumers: approvals.consumers.count() }, 200)
    })
    .get('/:id', async (c) => {
      const asked = approvals.require(c.req.param('id'))
      const preview =
        asked.operation.status === 'waiting_approval' ? await previewOperation(deps.gate, asked.operation) : undefined
      return c.json(
        { ...(await approvalView(deps, asked)), preview: preview === undefined ? null : visible(preview) },
        200,
      )
    })
    .post('/:id/approve', jsonBody(approveSchema), async (c) => {
      const done = await approvals.answer(c.req.param('id'), {
        answer: 'approved',
        by: 'owner',
        ...c.req.valid('json'),
      })
      return c.json({ ...(await approvalView(deps, done)), changed: done.changed }, 200)
    })
    .post('/:id/deny', jsonBody(denySchema), async (c) => {
      const { message } = c.req.valid('json')
      const answer = { answer: 'denied' as const, by: 'owner' as const, ...(message === undefined ? {} : { message }) }
      const done = await approvals.answer(c.req.param('id'), answer)
      return c.json({ ...(await approvalView(deps, done)), changed: done.changed }, 200)
    })
}

/** All that the owner needs to decide; nothing is redacted or cut here (AP-03), and nothing can hide (GU-32). */
async function approvalView(deps: OwnerDeps, { approval, operation }: Asked) {
  const { connections, sessions } = deps
  const connection = connections.get(operation.connection_id)
  const session = sessions.get(operation.session_ref)
  const { by, reason } = JSON.parse(approval.decision) as { by: string; reason: string }
  const { kinds } = JSON.parse(approval.kinds) as { kinds: { key: string; pattern: string }[] }
  return {
    id: approval.id,
    operation: operation.id,
    status: operation.status,
    connection: { id: operation.connection_id, name: connection?.name ?? null },
    client: operation.client === null ? null : (JSON.parse(operation.client) as { name: string; version: string }),
    session: {
      ref: operation.session_ref,
      title: session?.title ?? null,
      workspace: session?.workspace ?? null,
      mode: session?.mode ?? null,
    },
    tool: operation.tool,
    effect: operation.effect,
    /** Exactly what runs. */
    arguments: JSON.parse(operation.arguments) as Record<string, unknown>,
    /** The same for eyes, a line for each part. */
    shown: shownArguments(operation.arguments),
    command: await commandOf(deps, operation),
    /** It would run without a sandbox, with the owner's own rights (SB-02). */
    unconfined: (JSON.parse(operation.decision) as { unconfined?: boolean }).unconfined === true,
    argument_hash: operation.fingerprint,
    why: { by, reason },
    /** What "the same kind for this session" covers, and the rules that "always" adds; empty: only once is possible. */
    covers: kinds.map(({ key, pattern }) => ({ kind: key, rule: pattern })),
    asked_at: time(approval.asked_at),
    expires_at: time(approval.expires_at),
    answer: approval.answer,
    scope: approval.scope,
    message: approval.message,
    /** `owner`, or `expiry`. */
    answered_by: approval.answered_by,
    answered_at: time(approval.answered_at),
  }
}

/** A command's parts with their classes, made visible like everything else (CC-03); null for other tools. */
async function commandOf({ gate }: OwnerDeps, { tool, arguments: json }: Asked['operation']) {
  const native = findNative(tool)
  const read = native && (await scriptOf(gate.scripts, native, native.input.parse(JSON.parse(json))))
  if (read === undefined) return null
  const script = describeScript(read)
  return { ...script, commands: script.commands.map((command) => ({ ...command, text: visible(command.text) })) }
}

/** Each argument with its name; a text of several lines is shown whole, under its name. */
function shownArguments(json: string): { name: string; value: string }[] {
  return Object.entries(JSON.parse(json) as Record<string, unknown>).map(([name, value]) => ({
    name: visible(name),
    value: visible(typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)),
  }))
}

import type { z } from 'zod'
import { inlineWait } from '../calls/steps.js'
import { narrowed } from '../calls/terms.js'
import { beginningOf, describeCall, type OutcomeBlock, type Reply, safeCut } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { isTerminal, limitsOf } from '../operations/operations.js'
import { readPage } from '../operations/pages.js'
import { ended } from '../operations/present.js'
import type { OperationRow } from '../store/operations.js'
import type { ControlCall, ControlDeps } from './control.js'
import type { operationArguments } from './schemas.js'

type Call = ControlCall<z.output<typeof operationArguments>>

const LIST_PAGE = 20
const PREVIEW_CHARS = 500

export async function controlOperation(deps: ControlDeps, call: Call): Promise<Reply> {
  if (call.args.action === 'list') return list(deps, call)
  const id = call.args.operation_id
  if (id === undefined) {
    throw new KikiError('invalid_arguments', `kiki_operation ${call.args.action} needs operation_id.`, {
      hint: 'It is in _meta["kiki/operation"] of the call\'s answer; or use {"action":"list"}.',
    })
  }
  const row = await deps.operations.find(call.connection.id, id)
  const connection = narrowed(call.connection, deps.sessions.knownProfileOf(deps.sessions.get(row.session_ref)))
  switch (call.args.action) {
    case 'get':
      return get(deps, row)
    case 'wait':
      return wait(deps, { ...call, connection }, row)
    case 'cancel':
      return cancel(deps, row)
    case 'read':
      return readPage(deps.operations.sources, row, {
        part: call.args.part,
        offset: call.args.offset,
        limit: call.args.limit ?? connection.grant.inline_text_limit,
      })
  }
}

async function get(deps: ControlDeps, row: OperationRow): Promise<Reply> {
  const facts = factsOf(row)
  const preview = isTerminal(row.status) ? previewOf(deps, row) : (deps.operations.live(row.id)?.lastProgress ?? '')
  const structured = { ...facts, ...(preview === '' ? {} : { preview }) }
  const text = `${row.tool} (${row.id}) is ${row.status}.${preview === '' ? '' : `\n${preview}`}`
  return { content: [{ type: 'text', text }], structuredContent: structured, _meta: meta(row) }
}

async function wait(deps: ControlDeps, { connection, args, request }: Call, row: OperationRow): Promise<Reply> {
  const limits = limitsOf(connection)
  const live = deps.operations.live(row.id)
  if (live === undefined) {
    const now = await deps.operations.find(connection.id, row.id)
    if (isTerminal(now.status))
      return ended({ operationId: now.id, sessionRef: now.session_ref }, deps.operations.outcomeOf(now), limits)
    return get(deps, now)
  }
  const ms = inlineWait(connection, args.wait_ms ?? args._kiki?.wait_ms)
  return deps.operations.answer(live, ms, limits, request)
}

async function cancel(deps: ControlDeps, row: OperationRow): Promise<Reply> {
  if (isTerminal(row.status)) {
    return told(row, `${row.tool} (${row.id}) was over already: ${row.status}. Nothing changed.`)
  }
  const now = (await deps.operations.cancel(row.id, 'The client cancelled it.')) ?? row
  const effects = now.effects_possible === 1 ? ' It had begun, so effects are possible: inspect the target.' : ''
  return told(now, `${now.tool} (${now.id}) is ${now.status}.${effects}`)
}

/** Some applications show the model only `structuredContent`: it says what the text says. */
function told(row: OperationRow, message: string): Reply {
  const content = [{ type: 'text' as const, text: message }]
  return { content, structuredContent: { ...factsOf(row), message }, _meta: meta(row) }
}

async function list(deps: ControlDeps, { caller, connection, args }: Call): Promise<Reply> {
  const session = deps.sessions.resolve(caller, args.session_ref ?? args._kiki?.session_ref)
  await deps.operations.settleRecords()
  const limit = Math.min(args.limit ?? LIST_PAGE, 100)
  const beforeSeq = args.cursor === undefined ? undefined : cursorOf(args.cursor)
  const rows = deps.store.operations.list({
    connectionId: connection.id,
    sessionRef: session.ref,
    limit: limit + 1,
    ...(beforeSeq === undefined ? {} : { beforeSeq }),
  })
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const structured = {
    operations: shown.map(factsOf),
    ...(rows.length > limit && last !== undefined ? { cursor: String(last.seq) } : {}),
  }
  const lines = shown.map((row) => `${row.id}  ${row.tool}  ${row.status}  ${new Date(row.accepted_at).toISOString()}`)
  const text =
    lines.length === 0
      ? `No ${beforeSeq === undefined ? '' : 'earlier '}operations in this session.`
      : lines.join('\n') + (structured.cursor === undefined ? '' : `\nMore: cursor ${structured.cursor}`)
  return { content: [{ type: 'text', text }], structuredContent: structured, _meta: {} }
}

function cursorOf(given: string): number {
  const seq = /^[0-9]{1,15}$/.test(given) ? Number(given) : Number.NaN
  if (seq >= 1) return seq
  throw new KikiError('invalid_arguments', 'The cursor is not one that Kiki gave out.', {
    hint: 'Leave it out for the newest operations.',
  })
}

function factsOf(row: OperationRow) {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return {
    operation_id: row.id,
    tool: row.tool,
    status: row.status,
    session_ref: row.session_ref,
    created_at: time(row.accepted_at),
    started_at: time(row.started_at),
    ended_at: time(row.ended_at),
    ...(row.error_code === null ? {} : { error_code: row.error_code }),
    ...(row.effects_possible === 1 ? { effects_possible: true } : {}),
  }
}

function previewOf(deps: ControlDeps, row: OperationRow): string {
  const { content, facts } = deps.operations.outcomeOf(row)
  const part = content.findIndex((block) => beginningOf(block, 0) !== undefined)
  const first = content[part]
  const text = first === undefined ? `${content.length} parts of media` : beginning(row, part, first)
  return facts === undefined ? text : `${text}\n${JSON.stringify(facts)}`
}

/** The first 500 characters of a text, which say that they are not all of it. */
function beginning(row: OperationRow, part: number, block: OutcomeBlock): string {
  const { text = '', length = 0 } = beginningOf(block, PREVIEW_CHARS + 1) ?? {}
  const shown = text.slice(0, safeCut(text, PREVIEW_CHARS))
  if (shown.length === length) return shown
  const whole = { tool: 'kiki_operation', arguments: { action: 'read', operation_id: row.id, part } }
  return `${shown}\n[… only the first ${shown.length} of ${length} characters. The whole: ${describeCall(whole)}]`
}

function meta(row: OperationRow): Record<string, unknown> {
  return { 'kiki/operation': { operation_id: row.id, status: row.status, session_ref: row.session_ref } }
}

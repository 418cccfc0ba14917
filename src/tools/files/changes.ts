import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { diffOfChange } from '../../operations/change-content.js'
import { type ChangedOperation, changesOf, keyOf, undoneBy } from '../../operations/changes.js'
import { resolvePath } from '../../workspace/files.js'
import type { ChangeRecord } from '../../workspace/journal.js'
import { shownPath } from '../../workspace/list.js'
import { displayOf } from '../../workspace/paths.js'
import type { PastChange } from '../../workspace/undo-plan.js'
import type { Workspace } from '../../workspace/workspace.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'

const input = z.strictObject({
  operation_id: z.string().optional().describe('Its diffs.'),
  path: z.string().min(1).optional().describe('Its diffs, newest first.'),
  cursor: z.string().optional().describe('From the answer before.'),
})

type Input = z.infer<typeof input>

const NOT_RECORDED = 'Changes made by commands are not recorded here.'
/** Operations or differences in one answer. */
const LIMIT = 20
/** Changes of one operation that the list names. */
const NAMED = 20
const DIFF_CHARS = 4_000
/** Characters left for what stands around the differences. */
const RESERVED = 1_000

/** FI-14. */
export const changes = defineTool<Input>({
  name: 'Changes',
  title: 'Show file changes',
  description:
    "Lists this session's file changes, newest first, 20 at once; operation_id or path shows diffs (cut at 4,000 " +
    'characters). Changes by commands are not recorded.',
  effect: 'read',
  family: 'files',
  countsAs: ['Read'],
  input,
  async run(context, args) {
    if (args.operation_id === undefined && args.path === undefined) return list(context, args)
    return differences(context, args)
  },
})

function list({ changes: recorded, workspace, limits }: ToolContext, { cursor }: Input): ToolResult {
  // What was undone is told by newer operations, so these are read too.
  const before = position(cursor)
  const newer = before === undefined ? [] : recorded.page({ limit: -1 }).filter((one) => one.position >= before)
  const page = recorded.page({ before, limit: LIMIT + 1 })
  const undone = undoneBy([...newer, ...page])
  const shown: { operation: ChangedOperation; words: string }[] = []
  let room = Math.max(limits.inlineText - RESERVED, RESERVED)
  for (const operation of page.slice(0, LIMIT)) {
    const words = operationWords(workspace, operation, undone)
    if (shown.length > 0 && words.length > room) break
    room -= words.length + 1
    shown.push({ operation, words })
  }
  const last = shown.at(-1)?.operation.position
  const next = shown.length < page.length && last !== undefined ? String(last) : undefined
  const lines = [
    ...shown.map(({ words }) => words),
    ...(shown.length === 0 ? [`No ${cursor === undefined ? '' : 'earlier '}recorded changes.`] : []),
    NOT_RECORDED,
    ...(next === undefined ? [] : [`[More: cursor "${next}".]`]),
  ]
  return text(lines.join('\n'), {
    operations: shown.map(({ operation }) => operationFacts(workspace, operation, undone)),
    ...(next === undefined ? {} : { next }),
  })
}

function operationWords(workspace: Workspace, operation: ChangedOperation, undone: ReadonlyMap<string, string>) {
  const { id, tool, status, by, at, changes: records } = operation
  const state = status === 'completed' ? '' : ` (${status}: may be partly done)`
  const head = `${id}  ${tool}${by === 'owner' ? ' by the owner' : ''}  ${new Date(at).toISOString()}${state}`
  const lines = records.slice(0, NAMED).map((record) => {
    const taken = undone.get(keyOf({ operationId: id, seq: record.seq }))
    return `  ${changeWords(workspace, record)}${taken === undefined ? '' : ` (undone by ${taken})`}`
  })
  if (records.length > NAMED) lines.push(`  and ${records.length - NAMED} more (see operation_id)`)
  return [head, ...lines].join('\n')
}

function operationFacts(workspace: Workspace, operation: ChangedOperation, undone: ReadonlyMap<string, string>) {
  const { id, tool, status, by, at, changes: records } = operation
  return {
    operation_id: id,
    tool,
    status,
    by,
    at: new Date(at).toISOString(),
    total: records.length,
    changes: records.slice(0, NAMED).map((record) => ({
      ...changeFacts(workspace, record),
      ...(undone.has(keyOf({ operationId: id, seq: record.seq })) ? { undone: true } : {}),
    })),
  }
}

function differences(context: ToolContext, args: Input): ToolResult {
  const { workspace, limits } = context
  const { found, operations } = args.operation_id === undefined ? ofPath(context, args) : ofOperation(context, args)
  const from = position(args.cursor) ?? 0
  const shown: string[] = []
  let room = Math.max(limits.inlineText - RESERVED, DIFF_CHARS)
  for (const change of found.slice(from, from + LIMIT)) {
    const { diff, note } = diffOfChange({ ...context, operations }, change, DIFF_CHARS)
    const head = `${change.operationId}  ${changeWords(workspace, change.record)}`
    const words = [head, diff, note].filter((line) => line !== undefined && line !== '').join('\n')
    if (shown.length > 0 && words.length > room) break
    room -= words.length + 1
    shown.push(words)
  }
  const next = from + shown.length < found.length ? String(from + shown.length) : undefined
  const lines = [
    ...shown,
    ...(found.length === 0 ? [`No recorded changes. ${NOT_RECORDED}`] : []),
    ...(next === undefined ? [] : [`[${shown.length} of ${found.length}; more: cursor "${next}".]`]),
  ]
  return text(lines.join('\n'), {
    total: found.length,
    changes: found.slice(from, from + shown.length).map(({ operationId, record }) => ({
      operation_id: operationId,
      ...changeFacts(workspace, record),
    })),
    ...(next === undefined ? {} : { next }),
  })
}

interface Chosen {
  found: PastChange[]
  operations: ChangedOperation[]
}

function ofOperation(context: ToolContext, args: Input): Chosen {
  const operations = context.changes.since(args.operation_id)
  const operation = operations.find(({ id }) => id === args.operation_id)
  const found = operation === undefined ? [] : changesOf(operation).toReversed()
  return { found: args.path === undefined ? found : at(context, args.path, found), operations }
}

function ofPath(context: ToolContext, { path = '.' }: Input): Chosen {
  const operations = context.changes.since()
  return { found: at(context, path, operations.flatMap(changesOf)), operations }
}

/** Those of a path or of anything below it. */
function at({ workspace }: ToolContext, path: string, found: readonly PastChange[]): PastChange[] {
  const wanted = resolvePath(workspace, path, { follow: false }).path
  const isThere = (one: string | undefined) => one === wanted || one?.startsWith(`${wanted}/`) === true
  return found.filter(({ record }) => isThere(record.path) || isThere(record.to))
}

const KINDS: Record<ChangeRecord['kind'], string> = {
  create: 'created',
  modify: 'modified',
  delete: 'deleted',
  move: 'moved',
  mkdir: 'made folder',
}

function changeWords(workspace: Workspace, { kind, node, path, to }: ChangeRecord): string {
  const what = node === undefined || kind === 'mkdir' ? '' : node === 'link' ? 'link ' : 'folder '
  const target = to === undefined ? '' : ` to ${shownPath(displayOf(workspace, to))}`
  return `${KINDS[kind]} ${what}${shownPath(displayOf(workspace, path))}${target}`
}

function changeFacts(workspace: Workspace, { seq, kind, path, to, node, beforeSha256, afterSha256 }: ChangeRecord) {
  return {
    seq,
    kind,
    path: displayOf(workspace, path),
    ...(to === undefined ? {} : { to: displayOf(workspace, to) }),
    ...(node === undefined ? {} : { node }),
    ...(beforeSha256 === undefined ? {} : { before_sha256: beforeSha256 }),
    ...(afterSha256 === undefined ? {} : { after_sha256: afterSha256 }),
  }
}

function position(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw new KikiError('invalid_arguments', 'The cursor is not one that Changes gave out.', {
    hint: 'Leave it out to begin at the newest change.',
  })
}

import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { type ChangeDiff, diffOfChange } from '../../operations/change-content.js'
import { pathsOfUndo, type Undone, undoChanges } from '../../operations/undo.js'
import { stepWords } from '../../operations/undo-words.js'
import { shownPath } from '../../workspace/list.js'
import { displayOf } from '../../workspace/paths.js'
import type { PastChange } from '../../workspace/undo-plan.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'

const input = z.strictObject({
  operation_id: z.string().optional().describe('Undo this only.'),
  since: z.string().optional().describe('Undo this and all later.'),
  dry_run: z.boolean().optional().describe('Only tell.'),
})

type Input = z.infer<typeof input>

/** Lines about single steps, and about what needed no step. */
const SHOWN = 100
/** Characters of all differences that a dry run shows. */
const DIFF_CHARS = 8_000

/** FI-14. */
export const undo = defineTool<Input>({
  name: 'Undo',
  title: 'Undo file changes',
  description:
    "Takes back this session's file changes (at most 256 MiB), by default the latest operation's. Refuses, with the " +
    'difference, if a file changed since. Undo an undo by its id.',
  effect: 'write',
  family: 'files',
  countsAs: ['Read', 'Write'],
  recorded: ({ operation_id: operationId, since }, changes) => pathsOfUndo(changes, { operationId, since }),
  input,
  async run(context, { operation_id: operationId, since, dry_run: dryRun = false }) {
    if (operationId !== undefined && since !== undefined) throw both()
    const undone = await undoChanges(context, { operationId, since, dryRun })
    return result(context, undone, dryRun)
  },
})

function result(context: ToolContext, undone: Undone, dryRun: boolean): ToolResult {
  const { workspace } = context
  const { steps, asBefore, kept } = undone
  const count = `${steps.length} ${steps.length === 1 ? 'change' : 'changes'}`
  const of = [...new Set(steps.map(({ operationId }) => operationId))].join(', ')
  const head =
    steps.length === 0
      ? 'Nothing had to be undone.'
      : `${dryRun ? 'Would undo' : 'Undid'} ${count} of ${of}${dryRun ? '; nothing was changed' : ''}:`
  const paths = (changes: readonly PastChange[]) =>
    `${changes
      .slice(0, SHOWN)
      .map(({ record }) => shownPath(displayOf(workspace, record.path)))
      .join(', ')}${changes.length > SHOWN ? ', …' : ''}`
  const lines = [
    head,
    ...steps.slice(0, SHOWN).map((step) => `- ${stepWords(workspace, step)}`),
    ...(steps.length > SHOWN ? [`- and ${steps.length - SHOWN} more`] : []),
    ...(asBefore.length > 0 ? [`As before already: ${paths(asBefore)}.`] : []),
    ...(kept.length > 0 ? [`Kept, because something is in it: ${paths(kept)}.`] : []),
    ...(dryRun ? differences(context, undone) : []),
  ]
  return text(lines.join('\n'), {
    dry_run: dryRun,
    undone: steps.map(({ operationId, record, act, path }) => ({
      operation_id: operationId,
      seq: record.seq,
      did: act,
      path: displayOf(workspace, path),
    })),
    as_before: asBefore.length,
    kept: kept.map(({ record }) => displayOf(workspace, record.path)),
  })
}

/** What the undone changes had done, for as long as there is room; undoing reverses it. */
function differences(context: ToolContext, { steps, operations }: Undone): string[] {
  const shown: string[] = []
  let room = DIFF_CHARS
  for (const step of steps.filter(({ act }) => act === 'write')) {
    if (room < 500) break
    const change: ChangeDiff = diffOfChange({ ...context, operations }, step, room)
    room -= change.diff.length
    if (change.diff !== '') shown.push(change.diff)
  }
  return shown.length === 0 ? [] : ['The changes that would be taken back:', ...shown]
}

function both(): KikiError {
  return new KikiError('invalid_arguments', 'Give operation_id or since, not both.', {
    hint: 'operation_id undoes one operation, since all from that one on.',
  })
}

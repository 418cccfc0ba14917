import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { runInSlices } from '../../lib/slices.js'
import { diffOf } from '../../workspace/diff-files.js'
import { describeTolerance } from '../../workspace/edit-text.js'
import { shownPath } from '../../workspace/list.js'
import { applySteps } from '../../workspace/patch-apply.js'
import type { PatchSection } from '../../workspace/patch-format.js'
import type { AppliedHunk } from '../../workspace/patch-hunks.js'
import { parsePatch } from '../../workspace/patch-parse.js'
import { type PlannedFile, planPatch } from '../../workspace/patch-plan.js'
import { defineTool, type PreviewContext, type ToolContext, type ToolResult, type ToolTarget, text } from '../tool.js'
import { SHOWN_CHARS } from './preview.js'

const input = z.strictObject({
  patch: z.string().min(1).describe('Its text.'),
  dry_run: z.boolean().optional().describe('Only show the diffs.'),
})

type Input = z.infer<typeof input>

/** Characters of one file's diff, and of what stands around the diffs of all. */
const DIFF_CHARS = 4_000
const RESERVED = 1_000
/** Hunks of one file that are told about singly. */
const TOLD_HUNKS = 20

/** FI-10, FI-11. */
export const applyPatch = defineTool<Input>({
  name: 'ApplyPatch',
  title: 'Apply a patch',
  description:
    'Applies a unified or git diff, or *** Begin Patch, to several files, all or nothing; a refusal names file and hunk. ' +
    'Context matches as in Edit; line numbers may be off, ambiguous places are refused. Nothing binary.',
  effect: 'write',
  family: 'files',
  countsAs: ['Read', 'Write', 'Edit', 'Move', 'Delete'],
  targets: ({ patch }) => targetsOf(patch),
  input,
  async preview(context, { patch }) {
    const { files } = await plan(context, patch)
    let room = SHOWN_CHARS
    const shown = files.map((file) => {
      const diff = diffOfFile(file, room)
      room = Math.max(0, room - diff.length)
      return [wordsOf(file, 'would'), diff].filter((part) => part !== '').join('\n')
    })
    return shown.join('\n')
  },
  async run(context, { patch, dry_run: dryRun = false }) {
    const { files, steps } = await plan(context, patch)
    if (!dryRun) await applySteps({ ...context, content: context.changes.content }, steps)
    return report(context, files, dryRun)
  },
})

function plan({ workspace, signal }: PreviewContext, patch: string) {
  return runInSlices(planPatch(workspace, parsePatch(patch)), signal)
}

/** Every path that the patch names; none of one that cannot be read, which `run` refuses. */
function targetsOf(patch: string): ToolTarget[] {
  try {
    return parsePatch(patch).flatMap(targetsOfSection)
  } catch (error) {
    if (error instanceof KikiError) return []
    throw error
  }
}

function targetsOfSection({ act, path, to, copyOf }: PatchSection): ToolTarget[] {
  if (act === 'delete') return [{ path, follow: false }]
  if (act === 'add') return [{ path, follow: false }, ...(copyOf === undefined ? [] : [{ path: copyOf }])]
  return to === undefined
    ? [{ path }]
    : [
        { path, follow: false },
        { path: to, follow: false },
      ]
}

function report({ limits }: Pick<ToolContext, 'limits'>, files: readonly PlannedFile[], dryRun: boolean): ToolResult {
  const count = `${files.length} ${files.length === 1 ? 'file' : 'files'}`
  const heads = files.map((file) => [wordsOf(file, dryRun ? 'would' : 'did'), ...notesOf(file.applied)].join('\n'))
  let room = limits.inlineText - RESERVED - heads.reduce((sum, head) => sum + head.length + 1, 0)
  const lines = [dryRun ? `Dry run, nothing was written; the patch fits ${count}:` : `Applied the patch to ${count}:`]
  let left = 0
  for (const [index, file] of files.entries()) {
    const diff = diffOfFile(file, Math.min(DIFF_CHARS, Math.max(room, 0)))
    const shown = diff !== '' && diff.length <= room
    if (shown) room -= diff.length + 1
    else if (diff !== '') left++
    lines.push(heads[index] ?? '', ...(shown ? [diff] : []))
  }
  if (left > 0) lines.push(`[${left} diffs left out, because the answer would be too long; Changes shows them.]`)
  return text(lines.join('\n'), { files: files.map(factsOf), ...(dryRun ? { dry_run: true } : {}) })
}

const VERBS = {
  did: { created: 'Created', edited: 'Edited', deleted: 'Deleted', moved: 'Moved' },
  would: { created: 'Creates', edited: 'Edits', deleted: 'Deletes', moved: 'Moves' },
} as const

function wordsOf(file: PlannedFile, tense: keyof typeof VERBS): string {
  const { did, display, from, applied, executable } = file
  const name = from === undefined ? shownPath(display) : `${shownPath(from)} to ${shownPath(display)}`
  const hunks = applied.length === 0 ? '' : `: ${applied.length} ${applied.length === 1 ? 'hunk' : 'hunks'}`
  const mode = executable === undefined ? '' : `; ${executable ? 'executable' : 'not executable'}`
  const hash = file.sha256 === undefined ? '' : `; sha256 ${file.sha256}`
  return `${VERBS[tense][did]} ${name}${hunks}${mode}${hash}.`
}

/** What was not as the patch says it, of each hunk (FI-08). */
function notesOf(applied: readonly AppliedHunk[]): string[] {
  const notes = applied.flatMap(({ line, off, how, miscounted }, index) => {
    const parts = [
      ...(off === 0 ? [] : [`at line ${line}, ${Math.abs(off)} ${off > 0 ? 'below' : 'above'} its number`]),
      ...(how === 'exact' ? [] : [describeTolerance(how)]),
      ...(miscounted ? ["its header's counts were wrong"] : []),
    ]
    return parts.length === 0 ? [] : [`Hunk ${index + 1}: ${parts.join('; ')}.`]
  })
  const more = notes.length > TOLD_HUNKS ? [`[The same of ${notes.length - TOLD_HUNKS} more hunks.]`] : []
  return [...notes.slice(0, TOLD_HUNKS), ...more]
}

function diffOfFile({ before, after, display }: PlannedFile, maxChars: number): string {
  if ((before === undefined && after === undefined) || maxChars <= 0) return ''
  return diffOf({ before, after: after ?? Buffer.alloc(0), display, maxChars })
}

function factsOf({ did, display, from, sha256, executable, applied }: PlannedFile): Record<string, unknown> {
  return {
    path: display,
    did,
    ...(from === undefined ? {} : { from }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(executable === undefined ? {} : { executable }),
    ...(applied.length === 0 ? {} : { hunks: applied.map(({ line, how }) => ({ line, matched: how })) }),
  }
}

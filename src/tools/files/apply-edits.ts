import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { sha256 } from '../../lib/json.js'
import { runInSlices, type Sliced } from '../../lib/slices.js'
import { diffOf } from '../../workspace/diff-files.js'
import { describeTolerance, type EditedText, editSteps, type TextEdit } from '../../workspace/edit-text.js'
import { changeFile } from '../../workspace/files.js'
import { shownPath } from '../../workspace/list.js'
import { type ToolContext, type ToolResult, text } from '../tool.js'
import { checkSha256, expectedSha256 } from './changed.js'
import { previewChange, readCurrent } from './preview.js'

/** Arguments of each edit of `MultiEdit`; `Edit` says what they mean: every definition is paid for in tokens (TQ-01). */
export const listedEditFields = {
  old_string: z.string(),
  new_string: z.string(),
  replace_all: z.boolean().optional(),
  expected_count: z.int().min(1).optional(),
}

const { old_string, new_string, replace_all, expected_count } = listedEditFields

/** The same for `Edit`. */
export const editFields = {
  old_string: old_string.describe("Text to replace, without Read's line numbers. Empty: fills a new or empty file."),
  new_string: new_string.describe('Text to put there; line ends follow the file.'),
  replace_all: replace_all.describe('Replace every match.'),
  expected_count: expected_count.describe('Refuse another number of matches.'),
}

/** Arguments about the file that `Edit` and `MultiEdit` share. */
export const fileFields = {
  path: z.string().min(1).describe('File.'),
  expected_sha256: expectedSha256,
  dry_run: z.boolean().optional().describe('Only show the diff.'),
}

export type EditFields = z.infer<z.ZodObject<typeof editFields>>
export type FileFields = z.infer<z.ZodObject<typeof fileFields>>

export function toTextEdit(edit: EditFields): TextEdit {
  return {
    oldString: edit.old_string,
    newString: edit.new_string,
    ...(edit.replace_all === undefined ? {} : { replaceAll: edit.replace_all }),
    ...(edit.expected_count === undefined ? {} : { expectedCount: edit.expected_count }),
  }
}

/** What is told of one edit. The text after each is not kept: a hundred of them would be too much. */
type Done = Omit<EditedText, 'bytes'>

type EditContext = Pick<ToolContext, 'workspace' | 'journal' | 'signal'>

/**
 * Edits one file, or shows what the edits would do (FI-07, FI-09, FI-11). All edits or none.
 * @param edits in order, each on what the one before left
 * @param nameOf what a refusal calls an edit, put before its message
 * @throws KikiError as {@link editSteps}; `conflict` where `expected_sha256` is not the file's
 */
export async function editFile(
  context: EditContext,
  file: FileFields,
  edits: readonly TextEdit[],
  nameOf: (index: number) => string,
): Promise<ToolResult> {
  const { change, create, done } = changeOf(file, edits, nameOf)
  if (file.dry_run !== true) {
    const changed = await changeFile(context, file.path, change, { create })
    return report(changed, done(), false)
  }
  const { before, display } = readCurrent(context.workspace, file.path, create)
  const after = await runInSlices(change(before), context.signal)
  const created = before === undefined
  return report({ before, after, display, created, sha256: sha256(after) }, done(), true)
}

/** What the edits would change, for the owner who is asked (AP-03). @throws KikiError as {@link editFile}. */
export function previewEdits(
  context: Pick<ToolContext, 'workspace' | 'signal'>,
  file: FileFields,
  edits: readonly TextEdit[],
  nameOf: (index: number) => string,
): Promise<string> {
  const { change, create } = changeOf(file, edits, nameOf)
  return previewChange(context, file.path, change, create)
}

function changeOf(file: FileFields, edits: readonly TextEdit[], nameOf: (index: number) => string) {
  let done: Done[] = []
  const change = function* (current: Buffer | undefined): Sliced<Buffer> {
    checkSha256(current, file.expected_sha256, file.path)
    const edited = yield* applyAll(current, edits, file.path, nameOf)
    done = edited.done
    if (current?.equals(edited.bytes)) throw undoneByItself(file.path)
    return edited.bytes
  }
  return { change, create: edits[0]?.oldString === '', done: () => done }
}

function* applyAll(
  current: Buffer | undefined,
  edits: readonly TextEdit[],
  display: string,
  nameOf: (index: number) => string,
): Sliced<{ bytes: Buffer; done: Done[] }> {
  const done: Done[] = []
  let bytes = current
  for (const [index, edit] of edits.entries()) {
    try {
      const { bytes: after, ...facts } = yield* editSteps(bytes, edit, display)
      bytes = after
      done.push(facts)
    } catch (error) {
      throw error instanceof KikiError ? named(error, nameOf(index), index) : error
    }
  }
  return { bytes: bytes ?? Buffer.alloc(0), done }
}

function undoneByItself(display: string): KikiError {
  return new KikiError('invalid_arguments', `The edits undo each other and change nothing in ${display}.`, {
    hint: 'Send only the edits that shall remain.',
  })
}

function named(error: KikiError, name: string, index: number): KikiError {
  if (name === '') return error
  return new KikiError(error.code, `${name}: ${error.message}`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    data: { ...error.data, edit: index },
    cause: error,
  })
}

interface Outcome {
  before: Buffer | undefined
  after: Buffer
  display: string
  created: boolean
  sha256: string
}

function report(outcome: Outcome, done: readonly Done[], dryRun: boolean): ToolResult {
  const count = done.reduce((sum, edit) => sum + edit.count, 0)
  const tolerant = done.flatMap(({ how }, index) =>
    how === 'exact' ? [] : [`${done.length > 1 ? `edits[${index}]` : 'old_string'} was ${describeTolerance(how)}.`],
  )
  const verb = dryRun ? 'Dry run, nothing was written; this would be' : outcome.created ? 'Created' : 'Edited'
  const lines = done.length === 1 ? linesOf(done[0]) : ''
  const head = `${verb} ${shownPath(outcome.display)}: ${count} replacement${count === 1 ? '' : 's'}${lines}; sha256 ${outcome.sha256}.`
  const facts = {
    count,
    sha256: outcome.sha256,
    matched: done.map(({ how }) => how),
    ...(outcome.created ? { created: true } : {}),
    ...(dryRun ? { dry_run: true } : {}),
  }
  return text([head, ...tolerant, diffOf(outcome)].filter((line) => line !== '').join('\n'), facts)
}

function linesOf(edit: Done | undefined): string {
  if (edit === undefined) return ''
  const more = edit.count > edit.lines.length ? ', …' : ''
  return ` in line${edit.count === 1 ? '' : 's'} ${[...new Set(edit.lines)].join(', ')}${more}`
}

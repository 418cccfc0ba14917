import { z } from 'zod'
import { defineTool } from '../tool.js'
import { editFile, fileFields, listedEditFields, previewEdits, toTextEdit } from './apply-edits.js'

/** Edits of one call. */
const MAX_EDITS = 100

/** The tool `MultiEdit` (FI-09, FI-11). */
export const multiEdit = defineTool({
  name: 'MultiEdit',
  title: 'Edit a file in several places',
  description: [
    `Makes up to ${MAX_EDITS} edits in one file, all or nothing, in order, each as in Edit and on what the one before left. A`,
    'refusal names edits[n], from 0.',
  ].join(' '),
  effect: 'write',
  family: 'files',
  countsAs: ['Read', 'Write', 'Edit'],
  targets: ({ path }) => [{ path }],
  input: z.strictObject({
    ...fileFields,
    edits: z.array(z.strictObject(listedEditFields)).min(1).max(MAX_EDITS).describe('Fields as in Edit.'),
  }),
  preview: async (context, args) => previewEdits(context, args, args.edits.map(toTextEdit), nameOf),
  async run(context, args) {
    return editFile(context, args, args.edits.map(toTextEdit), nameOf)
  },
})

function nameOf(index: number): string {
  return `edits[${index}]`
}

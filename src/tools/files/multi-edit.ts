import { z } from 'zod'
import { defineTool } from '../tool.js'
import { editFields, editFile, fileFields, toTextEdit } from './apply-edits.js'

/** Edits of one call. */
const MAX_EDITS = 100

/** The tool `MultiEdit` (FI-09, FI-11). */
export const multiEdit = defineTool({
  name: 'MultiEdit',
  title: 'Edit a file in several places',
  description: [
    'Makes several edits in one file, all or nothing. They are applied in order, each to what the one before left, and',
    `work as in Edit. A refusal names the edit as edits[n], counted from 0; the file is then unchanged. At most ${MAX_EDITS}`,
    'edits. The result is one short diff of all of them; dry_run shows it without writing.',
  ].join(' '),
  effect: 'write',
  family: 'files',
  input: z.strictObject({
    ...fileFields,
    edits: z.array(z.strictObject(editFields)).min(1).max(MAX_EDITS).describe('Edits in order, counted from 0.'),
  }),
  async run(context, args) {
    return editFile(context, args, args.edits.map(toTextEdit), (index) => `edits[${index}]`)
  },
})

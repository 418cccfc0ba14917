import { z } from 'zod'
import { defineTool } from '../tool.js'
import { editFields, editFile, fileFields, previewEdits, toTextEdit } from './apply-edits.js'

/** The tool `Edit` (FI-07, FI-08, FI-11). */
export const edit = defineTool({
  name: 'Edit',
  title: 'Edit a file',
  description: [
    'Replaces literal text. old_string must be there once, or set replace_all; it is also found with other line endings,',
    'trailing white space or typographic quotes, and the result says so. Line ends, BOM, encoding, mode and final newline',
    'are kept. A refusal shows the nearest region, or the lines of several matches.',
    'Up to 64 MiB.',
  ].join(' '),
  effect: 'write',
  family: 'files',
  countsAs: ['Read', 'Write'],
  targets: ({ path }) => [{ path }],
  input: z.strictObject({ ...fileFields, ...editFields }),
  preview: async (context, args) => previewEdits(context, args, [toTextEdit(args)], () => ''),
  async run(context, args) {
    return editFile(context, args, [toTextEdit(args)], () => '')
  },
})

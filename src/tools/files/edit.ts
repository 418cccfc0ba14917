import { z } from 'zod'
import { defineTool } from '../tool.js'
import { editFields, editFile, fileFields, previewEdits, toTextEdit } from './apply-edits.js'

/** The tool `Edit` (FI-07, FI-08, FI-11). */
export const edit = defineTool({
  name: 'Edit',
  title: 'Edit a file',
  description: [
    'Replaces literal text in a file (nothing is a pattern). old_string must be there exactly once, or set replace_all. If',
    'it is not there exactly, it is also found with other line endings, trailing white space or typographic quotes, and the',
    'result says so. Line ends, BOM, encoding, mode and final newline are kept. not_found shows the nearest region,',
    'conflict lists the lines of several matches. Answers a short diff and the new SHA-256. Up to 64 MiB. Can be undone.',
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

import { z } from 'zod'
import { defineTool } from '../tool.js'
import { editFields, editFile, fileFields, toTextEdit } from './apply-edits.js'

/** The tool `Edit` (FI-07, FI-08, FI-11). */
export const edit = defineTool({
  name: 'Edit',
  title: 'Edit a file',
  description: [
    'Replaces literal text in a file; nothing in it is a pattern. old_string must stand there exactly once, or set',
    'replace_all. If it is not there exactly, it is also found with other line endings, then with other white space at',
    'line ends or typographic quotes, and the result says so; nothing else is guessed. Line ends, byte order mark,',
    'encoding, mode and final newline are kept. An absent text (not_found) shows the nearest region; several matches',
    '(conflict) list their lines. The result is a short diff, with count and the new SHA-256 as facts. dry_run shows it',
    'without writing. An empty old_string creates the file or fills an empty one. Files up to 64 MiB.',
  ].join(' '),
  effect: 'write',
  family: 'files',
  input: z.strictObject({ ...fileFields, ...editFields }),
  async run(context, args) {
    return editFile(context, args, [toTextEdit(args)], () => '')
  },
})

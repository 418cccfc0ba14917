import { z } from 'zod'
import { shownPath } from '../../workspace/list.js'
import { removeFile } from '../../workspace/remove.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).describe('What to delete: relative to the workspace, or absolute inside it.'),
  recursive: z.boolean().default(false).describe('Needed for a folder: deletes everything in it (default false).'),
})

/** FI-12. Called `remove` because `delete` is a reserved word. */
export const remove = defineTool<z.infer<typeof input>>({
  name: 'Delete',
  title: 'Delete a file or folder',
  description:
    'Deletes a file, a link (never what it points to) or, with recursive: true, a folder with everything in it. ' +
    'The content is kept first, so that it can be undone; therefore a folder may hold at most 10,000 entries and ' +
    '256 MiB, and no pipes, sockets or devices. A folder that passes this is refused as a whole.',
  effect: 'write',
  family: 'files',
  input,
  async run(context, args) {
    const removed = await removeFile(context, args.path, { recursive: args.recursive })
    const what = removed.type === 'directory' ? ` (a folder, ${removed.entries} entries in all)` : ''
    return text(`Deleted ${shownPath(removed.display)}${what}.`, {
      path: removed.display,
      type: removed.type,
      entries: removed.entries,
    })
  },
})

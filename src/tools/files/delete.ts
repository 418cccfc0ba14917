import { z } from 'zod'
import { shownPath } from '../../workspace/list.js'
import { displayOf } from '../../workspace/paths.js'
import { previewRemoval, removeFile } from '../../workspace/remove.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).describe('What to delete.'),
  recursive: z.boolean().default(false).describe('Needed for a folder.'),
})

/** FI-12. Called `remove` because `delete` is a reserved word. */
export const remove = defineTool<z.infer<typeof input>>({
  name: 'Delete',
  title: 'Delete a file or folder',
  description:
    'Deletes a file, a link (not its target) or, with recursive, a folder: at most 10,000 entries and 256 MiB, else nothing.',
  effect: 'write',
  family: 'files',
  countsAs: ['Write'],
  targets: ({ path }) => [{ path, tree: true, follow: false }],
  input,
  async preview(context, { path }) {
    const { display, entries } = await previewRemoval(context, path)
    if (entries.length === 1) return `Deletes ${shownPath(display)}.`
    const names = entries.slice(0, -1).map((entry) => shownPath(displayOf(context.workspace, entry)))
    return `Deletes ${shownPath(display)} with all ${names.length} entries in it:\n${names.join('\n')}`
  },
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

import { z } from 'zod'
import { resolvePath } from '../../workspace/files.js'
import { shownPath } from '../../workspace/list.js'
import { moveFile } from '../../workspace/move.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  from: z.string().min(1).describe('What to move.'),
  to: z.string().min(1).describe('Its whole new path.'),
  overwrite: z.boolean().default(false).describe('Replace a file that is there; never a folder.'),
})

/** FI-12. */
export const move = defineTool<z.infer<typeof input>>({
  name: 'Move',
  title: 'Move or rename',
  description: 'Moves or renames a file, folder or link (not its target), making missing folders, on one file system.',
  effect: 'write',
  family: 'files',
  countsAs: ['Read', 'Write'],
  targets: ({ from, to }) => [
    { path: from, tree: true, follow: false },
    { path: to, follow: false },
  ],
  input,
  async preview({ workspace }, { from, to }) {
    const source = resolvePath(workspace, from, { follow: false })
    const target = resolvePath(workspace, to, { follow: false })
    const over = target.type === undefined ? '' : ` A ${target.type} is there now.`
    return `Moves ${shownPath(source.display)} (${source.type ?? 'missing'}) to ${shownPath(target.display)}.${over}`
  },
  async run(context, args) {
    const moved = await moveFile(context, args.from, args.to, { overwrite: args.overwrite })
    const replaced = moved.replaced ? ' It replaced the file that was there.' : ''
    return text(`Moved ${shownPath(moved.from)} to ${shownPath(moved.to)}.${replaced}`, { ...moved })
  },
})

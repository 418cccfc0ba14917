import { z } from 'zod'
import { makeFolders } from '../../workspace/folders.js'
import { shownPath } from '../../workspace/list.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).describe('Folder to make: relative to the workspace, or absolute inside it.'),
})

/** FI-12. */
export const makeDirectory = defineTool<z.infer<typeof input>>({
  name: 'MakeDirectory',
  title: 'Make a folder',
  description:
    'Makes a folder and the missing folders above it. One that is there already is left as it is, which is no error. ' +
    'Write and Move make missing folders by themselves. Can be undone.',
  effect: 'write',
  family: 'files',
  input,
  async run(context, args) {
    const { display, made } = await makeFolders(context, args.path)
    const says =
      made.length === 0 ? `${shownPath(display)} is a folder already.` : `Made ${made.map(shownPath).join(', ')}.`
    return text(says, { path: display, made })
  },
})

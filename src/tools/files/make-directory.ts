import { z } from 'zod'
import { makeFolders } from '../../workspace/folders.js'
import { shownPath } from '../../workspace/list.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).describe('Folder.'),
})

/** FI-12. */
export const makeDirectory = defineTool<z.infer<typeof input>>({
  name: 'MakeDirectory',
  title: 'Make a folder',
  description:
    'Makes a folder and missing ones above it; one that is there is no error. Write and Move do so by themselves.',
  effect: 'write',
  family: 'files',
  countsAs: ['Write'],
  targets: ({ path }) => [{ path }],
  input,
  async run(context, args) {
    const { display, made } = await makeFolders(context, args.path)
    const says =
      made.length === 0 ? `${shownPath(display)} is a folder already.` : `Made ${made.map(shownPath).join(', ')}.`
    return text(says, { path: display, made })
  },
})

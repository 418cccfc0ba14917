import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { diffOf } from '../../workspace/diff-files.js'
import { hasLoneSurrogate } from '../../workspace/encoding.js'
import { type ChangedFile, changeFile } from '../../workspace/files.js'
import { encodeLike } from '../../workspace/keep-format.js'
import { defineTool, type ToolResult, text } from '../tool.js'
import { checkSha256, expectedSha256 } from './changed.js'

const input = z.strictObject({
  path: z.string().min(1).describe('File to write: relative to the workspace, or absolute inside it.'),
  content: z.string().describe('The whole new content, as text. A last line end is neither added nor removed.'),
  expected_sha256: expectedSha256,
  keep_format: z
    .boolean()
    .default(true)
    .describe('Keep the byte order mark, encoding and line ends of a replaced file (default). false: UTF-8 as given.'),
})

type Input = z.infer<typeof input>

/** FI-06. */
export const write = defineTool<Input>({
  name: 'Write',
  title: 'Write a file',
  description:
    'Writes a whole text file, making it and its missing folders, or replacing it. Use Edit for a change of a part. ' +
    'A replaced file keeps its mode, byte order mark and line-end style (keep_format: false writes UTF-8 exactly as ' +
    'given). The file holds the old or the new content even after a crash; the old content is kept and can be undone. ' +
    'Give expected_sha256 (from Read) to be sure that nobody changed it since. At most 64 MiB. Links that lead out of ' +
    'the workspace are refused.',
  effect: 'write',
  family: 'files',
  input,
  async run(context, args) {
    if (hasLoneSurrogate(args.content)) throw halfCharacter()
    const changed = await changeFile(
      context,
      args.path,
      (current) => {
        checkSha256(current, args.expected_sha256, args.path)
        return current === undefined || !args.keep_format
          ? Buffer.from(args.content)
          : encodeLike(args.content, current)
      },
      { create: true },
    )
    return result(changed)
  },
})

function result(changed: ChangedFile): ToolResult {
  const { before, after, created, display } = changed
  const verb = created ? 'Created' : before?.equals(after) === true ? 'Already had this content:' : 'Replaced'
  const head = `${verb} ${display} (${after.length} bytes, sha256 ${changed.sha256}).`
  const diff = created ? '' : diffOf(changed)
  return text(diff === '' ? head : `${head}\n${diff}`, {
    path: display,
    sha256: changed.sha256,
    created,
    bytes: after.length,
  })
}

function halfCharacter(): KikiError {
  return new KikiError(
    'invalid_arguments',
    'The content holds half a character (a lone surrogate); nothing was written.',
    {
      hint: 'Send well-formed Unicode text.',
    },
  )
}

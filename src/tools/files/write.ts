import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { diffOf } from '../../workspace/diff-files.js'
import { hasLoneSurrogate } from '../../workspace/encoding.js'
import { type ChangedFile, changeFile } from '../../workspace/files.js'
import { encodeLike } from '../../workspace/keep-format.js'
import { shownPath } from '../../workspace/list.js'
import { defineTool, type ToolResult, text } from '../tool.js'
import { checkSha256, expectedSha256 } from './changed.js'
import { previewChange } from './preview.js'

const input = z.strictObject({
  path: z.string().min(1).describe('File.'),
  content: z.string().describe('The whole new text, exactly.'),
  expected_sha256: expectedSha256,
  keep_format: z.boolean().default(true).describe('false: write UTF-8 exactly as given.'),
})

type Input = z.infer<typeof input>

/** FI-06. */
export const write = defineTool<Input>({
  name: 'Write',
  title: 'Write a file',
  description:
    'Writes a whole text file and its missing folders, or replaces it, keeping mode, BOM and line-end style; use Edit for ' +
    'a part. At most 64 MiB.',
  effect: 'write',
  family: 'files',
  countsAs: ['Read'],
  targets: ({ path }) => [{ path }],
  input,
  preview: (context, args) => previewChange(context, args.path, contentOf(args), true),
  async run(context, args) {
    const changed = await changeFile(context, args.path, contentOf(args), { create: true })
    return result(changed)
  },
})

/** @throws KikiError where the content cannot be a file's, or the file is not the expected one. */
function contentOf(args: Input): (current: Buffer | undefined) => Buffer {
  if (hasLoneSurrogate(args.content)) throw halfCharacter()
  return (current) => {
    checkSha256(current, args.expected_sha256, args.path)
    return current === undefined || !args.keep_format ? Buffer.from(args.content) : encodeLike(args.content, current)
  }
}

function result(changed: ChangedFile): ToolResult {
  const { before, after, created, display } = changed
  const verb = created ? 'Created' : before?.equals(after) === true ? 'Already had this content:' : 'Replaced'
  const head = `${verb} ${shownPath(display)} (${after.length} bytes, sha256 ${changed.sha256}).`
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

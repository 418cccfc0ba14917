import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { type ChangedFile, changeFile } from '../../workspace/files.js'
import { sha256 } from '../../workspace/journal.js'
import { encodeLike, formatOf } from '../../workspace/keep-format.js'
import { defineTool, type ToolResult, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).describe('File.'),
  content: z.string().describe('The whole new text; no last line end is added or removed.'),
  expected_sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits')
    .optional()
    .describe('Refuse if the file is another by now (from Read).'),
  keep_format: z.boolean().default(true).describe('false: write UTF-8 exactly as given.'),
})

type Input = z.infer<typeof input>

/** FI-06. */
export const write = defineTool<Input>({
  name: 'Write',
  title: 'Write a file',
  description:
    'Writes a whole text file, making it and its missing folders, or replacing it; use Edit for a change of a part. A ' +
    'replaced file keeps its mode, BOM and line-end style. The file holds the old or the new content even after a crash. ' +
    'At most 64 MiB. Links out of the workspace are refused. Can be undone.',
  effect: 'write',
  family: 'files',
  input,
  async run(context, args) {
    if (/\p{Surrogate}/u.test(args.content)) throw halfCharacter()
    const changed = await changeFile(
      context,
      args.path,
      (current) => {
        if (args.expected_sha256 !== undefined) requireExpected(args.path, current, args.expected_sha256)
        return current === undefined || !args.keep_format
          ? Buffer.from(args.content)
          : encodeLike(args.content, formatOf(current))
      },
      { create: true },
    )
    return result(changed)
  },
})

function result(changed: ChangedFile): ToolResult {
  const { before, after, created, display } = changed
  const verb = created ? 'Created' : before?.equals(after) === true ? 'Already had this content:' : 'Replaced'
  return text(`${verb} ${display} (${after.length} bytes, sha256 ${changed.sha256}).`, {
    path: display,
    sha256: changed.sha256,
    created,
    bytes: after.length,
  })
}

function requireExpected(path: string, current: Buffer | undefined, expected: string): void {
  const actual = current === undefined ? undefined : sha256(current)
  if (actual === expected.toLowerCase()) return
  const is = actual === undefined ? 'does not exist' : `has sha256 ${actual}`
  throw new KikiError('conflict', `"${path}" ${is}, not the expected ${expected}; nothing was written.`, {
    hint: 'Read it again and decide anew.',
    data: actual === undefined ? { expected } : { expected, actual },
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

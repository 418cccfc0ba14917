import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { showName } from '../../workspace/list.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'
import { shownName } from './check.js'
import { type ListedFiles, listFiles } from './list-files.js'
import { openScope, placeName, type Scope, skippedNote } from './scope.js'

const DEFAULT_LIMIT = 250

const input = z.strictObject({
  pattern: z.string().min(1).max(1_000).describe('Like "*.md", "src/{a,b}/**/*.ts".'),
  path: z.string().min(1).default('.').describe('Folder to start in, literally.'),
  limit: z.number().int().min(1).max(10_000).optional().describe('Files in one answer.'),
  offset: z.number().int().min(0).max(10_000_000).default(0).describe('Files to skip.'),
  hidden: z.boolean().default(false).describe('Also dot files.'),
  ignored: z.boolean().default(false).describe('Also git-ignored files.'),
})

type Input = z.infer<typeof input>

/** SR-02, SR-03. */
export const glob = defineTool<Input>({
  name: 'Glob',
  title: 'Find files by name',
  description:
    'Finds files by name, newest first. * and ? match within a name, ** over folders. A pattern ' +
    'without a slash matches at any depth, else from path. 250 files unless limit says more; the last lines give ' +
    'next_offset. Hidden and git-ignored files are left out unless hidden or ignored is set, or the pattern names the folder ' +
    '(".github/**"). Links are not followed.',
  effect: 'read',
  family: 'search',
  countsAs: ['Read'],
  targets: ({ path }) => [{ path: path ?? '.' }],
  input,
  async run(context, args) {
    const scope = openGlobScope(context, args)
    if (scope === undefined) return nothingAt(args)
    try {
      if (scope.file !== undefined) throw notAFolder(args.path)
      return page(context, scope, args, await listFiles(context, scope))
    } finally {
      scope.folder.close()
    }
  },
})

/** Undefined where `path` is there, but not the folder that the pattern spells out. */
function openGlobScope(context: ToolContext, args: Input): Scope | undefined {
  const { workspace } = context
  const scopeOf = (glob?: string) =>
    openScope(workspace, { path: args.path, glob, hidden: args.hidden, ignored: args.ignored })
  try {
    return scopeOf(args.pattern)
  } catch (error) {
    if (!(error instanceof KikiError) || error.code !== 'not_found') throw error
    scopeOf().folder.close()
    return undefined
  }
}

function nothingAt(args: Input): ToolResult {
  const head = `No file matches ${JSON.stringify(args.pattern)}: the folder that it starts with is not there.`
  return text(`${head}\nUse List to see what is there.`, { files: 0, truncated: false })
}

function notAFolder(path: string): KikiError {
  return new KikiError('invalid_arguments', `"${path}" is a file; Glob starts in a folder.`, {
    hint: 'Give the folder as path, and the name in the pattern.',
  })
}

/** Characters kept free for the lines around the names. */
const NOTES_TEXT = 1_500

function page(context: ToolContext, scope: Scope, args: Input, listed: ListedFiles): ToolResult {
  const limit = args.limit ?? DEFAULT_LIMIT
  const maxText = args.limit === undefined ? context.limits.inlineText - NOTES_TEXT : Number.POSITIVE_INFINITY
  const rows: string[] = []
  let [used, changed, size] = [0, 0, 0]
  for (const file of listed.files.slice(args.offset, args.offset + limit)) {
    const display = shownName(context.workspace, scope, file.name)
    const row = display === undefined ? undefined : showName(Buffer.from(display))
    if (row !== undefined && rows.length > 0 && size + row.length + 1 > maxText) break
    used += 1
    if (row === undefined) changed += 1
    else {
      rows.push(row)
      size += row.length + 1
    }
  }
  const next = args.offset + used
  const more = next < listed.files.length
  const facts = {
    files: rows.length,
    total: listed.files.length,
    truncated: more,
    ...(more ? { next_offset: next } : {}),
  }
  const notes = notesOf(scope, args, listed, { more, next, changed })
  const head = headline(scope, args, listed.files.length, rows.length)
  return text([head, ...(rows.length === 0 ? [] : ['', ...rows, '']), ...notes].join('\n'), facts)
}

function headline(scope: Scope, args: Input, total: number, shown: number): string {
  if (total === 0) return `No file matches ${JSON.stringify(args.pattern)} in ${placeName(scope)}.`
  if (shown === 0) return `Nothing at offset ${args.offset} of ${total} files.`
  return `${shown === total ? '' : `${shown} of `}${total} ${total === 1 ? 'file matches' : 'files match'}, newest first.`
}

function notesOf(
  scope: Scope,
  args: Input,
  listed: ListedFiles,
  page: { more: boolean; next: number; changed: number },
): string[] {
  const notes: string[] = []
  if (page.more) {
    notes.push(`More: this is ${args.offset + 1}–${page.next} of ${listed.files.length}; next_offset ${page.next}.`)
  }
  if (page.changed > 0) notes.push(`${page.changed} left out: changed during the search.`)
  if (listed.badNames > 0) notes.push(`${listed.badNames} left out: the name is not UTF-8, so no tool can open it.`)
  if (listed.unreadable > 0) notes.push(`${listed.unreadable} folders not readable for Kiki.`)
  const skipped = skippedNote(scope, false)
  return skipped === '' ? notes : [...notes, skipped]
}

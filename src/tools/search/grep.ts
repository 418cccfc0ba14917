import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { showName } from '../../workspace/list.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'
import { shownName } from './check.js'
import { renderHits } from './render.js'
import { openScope, placeName, type Scope, scopeArgs, skippedNote } from './scope.js'
import { type Found, searchFiles, searchHits } from './search-contents.js'

const DEFAULT_LIMIT = 250
const lines = z.number().int().min(0).max(100).default(0)

const input = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(10_000)
    .refine((pattern) => !/[\0\p{Surrogate}]/u.test(pattern), 'holds a NUL or half a character (a lone surrogate)')
    .describe('Rust syntax; no look-around.'),
  path: z.string().min(1).default('.').describe('Folder or file, literally.'),
  glob: z.string().min(1).optional().describe('Like "*.ts", "src/**/*.{js,ts}"; "!…" leaves out.'),
  type: z
    .string()
    .regex(/^[A-Za-z0-9_+-]{1,40}$/)
    .optional()
    .describe('Like ts, py, rust.'),
  output_mode: z.enum(['content', 'files', 'count']).default('content').describe('What is shown.'),
  case_insensitive: z.boolean().default(false).describe('Ignore case.'),
  multiline: z.boolean().default(false).describe('Match across lines, also by ".".'),
  before: lines.describe('Lines before each match.'),
  after: lines.describe('Lines after each match.'),
  limit: z.number().int().min(1).max(10_000).optional().describe('Results in all.'),
  offset: z.number().int().min(0).max(10_000_000).default(0).describe('Results to skip.'),
  hidden: z.boolean().default(false).describe('Also dot files.'),
  ignored: z.boolean().default(false).describe('Also git-ignored files.'),
})

type Input = z.infer<typeof input>

/** SR-01, SR-03. */
export const grep = defineTool<Input>({
  name: 'Grep',
  title: 'Search in files',
  description:
    'Searches file contents by regular expression (ripgrep), in path order; output_mode content shows numbered lines, files ' +
    'names, count lines per file. 250 results in all unless limit says more; the last lines give next_offset. Hidden, ' +
    'git-ignored and binary files are left out unless hidden or ignored is set, or path or glob names the folder ' +
    '(".github/**"). A glob without a slash matches at any depth, else from path. Links are not followed.',
  effect: 'read',
  family: 'search',
  countsAs: ['Read'],
  targets: ({ path }) => [{ path: path ?? '.' }],
  input,
  async run(context, args) {
    const scope = openScope(context.workspace, args)
    try {
      return args.output_mode === 'content'
        ? await grepContent(context, scope, args)
        : await grepFiles(context, scope, args)
    } catch (error) {
      // `throwIfAborted` between two steps of our own; children say it by themselves.
      if (context.signal.aborted)
        throw new KikiError('cancelled', 'The search was cancelled.', { hint: 'Repeat it if it is still wanted.' })
      throw error
    } finally {
      scope.folder.close()
    }
  },
})

function patternArgs(scope: Scope, args: Input): string[] {
  const flags = ['--no-mmap', '--crlf']
  if (args.case_insensitive) flags.push('--ignore-case')
  if (args.multiline) flags.push('--multiline', '--multiline-dotall')
  if (args.before > 0) flags.push('--before-context', String(args.before))
  if (args.after > 0) flags.push('--after-context', String(args.after))
  return [...flags, ...scopeArgs(scope, args.type), '-e', args.pattern, '--', '.']
}

async function grepContent(context: ToolContext, scope: Scope, args: Input): Promise<ToolResult> {
  const limit = args.limit ?? DEFAULT_LIMIT
  const found = await searchHits(context, scope, patternArgs(scope, args), { offset: args.offset, limit })
  const shown = await renderHits(context, scope, found.files, {
    limit,
    before: args.before,
    after: args.after,
    // An explicit limit may pass the inline limit; long results are paged then (OP-13).
    maxText: args.limit === undefined ? context.limits.inlineText - NOTES_TEXT : Number.POSITIVE_INFINITY,
  })
  const consumed = args.offset + shown.used
  const more = found.more || (found.total !== undefined && consumed < found.total)
  return answer(scope, args, found, {
    unit: ['match', 'matches'],
    text: shown.text,
    shown: shown.matches,
    summary: `${plural(shown.matches, 'match', 'matches')} in ${plural(shown.files, 'file', 'files')}`,
    facts: { matches: shown.matches, files: shown.files },
    next: more ? consumed : undefined,
    changed: shown.changed,
  })
}

async function grepFiles(context: ToolContext, scope: Scope, args: Input): Promise<ToolResult> {
  const limit = args.limit ?? DEFAULT_LIMIT
  const counts = args.output_mode === 'count'
  const found = await searchFiles(context, scope, patternArgs(scope, { ...args, before: 0, after: 0 }), {
    offset: args.offset,
    limit,
    counts,
  })
  const maxText = args.limit === undefined ? context.limits.inlineText - NOTES_TEXT : Number.POSITIVE_INFINITY
  const rows: string[] = []
  let [used, changed, matches, size] = [0, 0, 0, 0]
  for (const file of found.files.slice(0, limit)) {
    const display = shownName(context.workspace, scope, file.name)
    const row =
      display === undefined ? undefined : `${showName(Buffer.from(display))}${counts ? `: ${file.count}` : ''}`
    if (row !== undefined && rows.length > 0 && size + row.length + 1 > maxText) break
    used += 1
    if (row === undefined) changed += 1
    else {
      rows.push(row)
      matches += file.count
      size += row.length + 1
    }
  }
  const more = found.more || used < Math.min(limit, found.files.length)
  const lines = counts ? `${plural(matches, 'matching line', 'matching lines')} in ` : ''
  return answer(scope, args, found, {
    unit: ['file', 'files'],
    text: rows.map((row) => `${row}\n`).join(''),
    shown: rows.length,
    summary: `${lines}${plural(rows.length, 'file', 'files')}${counts ? '' : ' with matches'}`,
    facts: { ...(counts ? { matches } : {}), files: rows.length },
    next: more ? args.offset + used : undefined,
    changed,
  })
}

/** Characters kept free for the lines around the results. */
const NOTES_TEXT = 1_500

interface Answer {
  unit: [one: string, many: string]
  text: string
  shown: number
  summary: string
  facts: Record<string, unknown>
  next: number | undefined
  changed: number
}

function answer(scope: Scope, args: Input, found: Found<unknown>, part: Answer): ToolResult {
  const total = found.total === undefined ? '' : ` of ${plural(found.total, part.unit[0], part.unit[1])}`
  const notes: string[] = []
  if (part.next !== undefined) {
    notes.push(`More: this is ${args.offset + 1}–${part.next}${total}; next_offset ${part.next}.`)
  }
  if (part.changed > 0)
    notes.push(`${plural(part.changed, part.unit[0], part.unit[1])} left out: changed during the search.`)
  if (found.badNames > 0) notes.push(`${plural(found.badNames, 'file', 'files')} left out: the name is not UTF-8.`)
  if (found.unreadable > 0) notes.push(`${plural(found.unreadable, 'place', 'places')} not readable for Kiki.`)
  if (found.cut > 0) {
    notes.push(
      `${plural(found.cut, 'file holds', 'files hold')} a NUL byte (binary): what follows it was not searched.`,
    )
  }
  if (scope.file !== undefined && part.shown === 0) {
    notes.push(
      'If the file holds a NUL byte it counts as binary and was not searched behind it; Read shows what it is.',
    )
  }
  const skipped = skippedNote(scope, true)
  if (skipped !== '') notes.push(skipped)
  const past = args.offset > 0 ? `Nothing at offset ${args.offset}${total}.` : ''
  const none =
    past || `No match for ${JSON.stringify(args.pattern.slice(0, 200))} in ${placeName(scope)}${filters(args)}.`
  const head = part.shown === 0 ? none : part.summary
  const facts = {
    ...(args.output_mode === 'files' ? {} : { matches: 0 }),
    ...part.facts,
    truncated: part.next !== undefined,
    ...(part.next === undefined ? {} : { next_offset: part.next }),
  }
  return text(
    [head, part.text === '' ? undefined : `\n${part.text}`, ...notes].filter((row) => row !== undefined).join('\n'),
    facts,
  )
}

function filters(args: Input): string {
  const parts = [
    args.glob === undefined ? '' : ` glob ${args.glob}`,
    args.type === undefined ? '' : ` type ${args.type}`,
  ]
  const all = parts.filter((part) => part !== '').join(' and')
  return all === '' ? '' : ` (only files of${all})`
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

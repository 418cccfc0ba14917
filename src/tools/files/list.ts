import { z } from 'zod'
import { type ListedEntry, type Listing, listFolder, MAX_LISTED, shownPath } from '../../workspace/list.js'
import { defineTool, type ToolResult, text } from '../tool.js'

const input = z.strictObject({
  path: z.string().min(1).default('.').describe('Folder.'),
  depth: z.number().int().min(1).max(16).default(1).describe('Levels of folders.'),
  limit: z.number().int().min(1).max(2_000).default(500).describe('Entries in one answer.'),
  offset: z.number().int().min(0).default(0).describe('Entries to skip.'),
})

type Input = z.infer<typeof input>

/** FI-13. */
export const list = defineTool<Input>({
  name: 'List',
  title: 'List a folder',
  description:
    'Lists a folder: type, bytes, time of change (UTC), name; sorted by name, hidden files included, links not followed. ' +
    `The last line gives the next offset; at most ${MAX_LISTED} entries are looked through.`,
  effect: 'read',
  family: 'files',
  targets: ({ path }) => [{ path }],
  input,
  async run(context, args) {
    return page(await listFolder(context, args.path, args), args, context.limits.inlineText)
  },
})

/** As many lines as fit the inline limit; the rest is asked for with the next offset, so nothing is cut in a line. */
function page(listing: Listing, args: Input, maxText: number): ToolResult {
  const lines: string[] = []
  let length = 0
  for (const entry of listing.entries) {
    const line = lineOf(entry)
    if (lines.length > 0 && length + line.length + 1 > maxText - RESERVED) break
    lines.push(line)
    length += line.length + 1
  }
  const next = args.offset + lines.length
  const more = next < listing.total
  const notes = notesOf(listing, args, lines.length, more ? next : undefined)
  return text([...lines, ...notes].join('\n'), {
    path: listing.display,
    total: listing.total,
    shown: lines.length,
    ...(more ? { next } : {}),
    ...(listing.capped ? { capped: true } : {}),
    ...(listing.homeSkipped ? { home_skipped: true } : {}),
  })
}

/** Characters left for the notes at the end. */
const RESERVED = 1_000

function lineOf(entry: ListedEntry): string {
  const time = entry.modified.toISOString().replace(/\.\d+Z$/, 'Z')
  const name = entry.type === 'directory' ? `${entry.name}/` : entry.name
  const target = entry.target === undefined ? '' : ` -> ${entry.target}`
  return `${entry.type.padEnd(9)} ${String(entry.size).padStart(10)}  ${time}  ${name}${target}`
}

function notesOf(listing: Listing, args: Input, shown: number, next: number | undefined): string[] {
  const notes: string[] = []
  if (listing.homeSkipped) notes.push("(Kiki's own home lies in here; it was skipped.)")
  if (listing.unreadable.length > 0) {
    notes.push(`(Not readable: ${listing.unreadable.slice(0, 5).join(', ')}; ${listing.unreadable.length} in all.)`)
  }
  if (listing.capped) notes.push(`(Stopped after ${listing.total} entries: list smaller folders, or use Glob.)`)
  const all = `${listing.capped ? 'at least ' : ''}${listing.total}`
  if (listing.total === 0) notes.push(`(${shownPath(listing.display)} is empty: 0 entries.)`)
  else if (shown === 0) notes.push(`(Offset ${args.offset} is past the end: ${all} entries.)`)
  else if (next !== undefined) notes.push(`(${shown} of ${all} entries; next: offset ${next}.)`)
  else notes.push(`(${all} entries; end of the list.)`)
  return notes
}

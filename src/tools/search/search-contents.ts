import { createSplitter } from '../../lib/json-lines.js'
import type { ToolContext } from '../tool.js'
import { mayCount } from './check.js'
import { collectHits, type FileHits } from './hits.js'
import { collectNames, type NamedFile } from './names.js'
import { sortByPath } from './order.js'
import { type Finished, runRipgrep } from './ripgrep.js'
import type { Scope } from './scope.js'

type Context = Pick<ToolContext, 'processes' | 'signal' | 'workspace'>

export interface Page {
  offset: number
  limit: number
}

export interface Found<T> {
  /** In path order, from the page's offset on; may hold more than the page. */
  files: T[]
  /** All matching lines (content) or files; undefined where the search stopped before it knew. */
  total: number | undefined
  /** All matching lines, where counts were asked for and the search went to its end. */
  matches: number | undefined
  /** True where there is something after the page. */
  more: boolean
  badNames: number
  unreadable: number
  /** Files that were searched only up to a NUL byte. */
  cut: number
}

/**
 * Up to this many results, all are collected by ripgrep's parallel search and sorted here. Above, and only then, ripgrep
 * searches again in path order (one thread) and stops after the page: both give the same pages.
 */
const PARALLEL_HITS = 5_000
const PARALLEL_NAMES = 100_000
/** One message: a matching line and its marks, escaped. A longer one is counted, not shown. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
const MAX_NAME_BYTES = 64 * 1024

/** Matching lines with the lines around them. `offset` and `limit` count matching lines. */
export async function searchHits(context: Context, scope: Scope, args: string[], page: Page): Promise<Found<FileHits>> {
  const run = async (skip: number, take: number, order: string[]) => {
    const collector = collectHits({ skip, take, mayCount: (name) => mayCount(context.workspace, scope, name) })
    const finished = await runSplit(context, scope, ['--json', ...order, ...args], 0x0a, MAX_MESSAGE_BYTES, collector)
    return { collector, finished }
  }
  if (page.offset + page.limit < PARALLEL_HITS) {
    const { collector, finished } = await run(0, PARALLEL_HITS, [])
    if (!collector.more) {
      const { matches, badNames, cut } = collector
      const more = matches > page.offset + page.limit
      const files = skipMatches(sortByPath(collector.files), page.offset)
      return { files, total: matches, matches, more, badNames, cut, unreadable: finished.unreadable }
    }
  }
  const { collector, finished } = await run(page.offset, page.limit, ['--sort', 'path'])
  const { files, more, badNames, cut } = collector
  const total = more ? undefined : collector.matches
  return { files, total, matches: total, more, badNames, cut, unreadable: finished.unreadable }
}

/** Files with matches, with `counts` how many lines match in each. `offset` and `limit` count files. */
export async function searchFiles(
  context: Context,
  scope: Scope,
  args: string[],
  page: Page & { counts: boolean },
): Promise<Found<NamedFile>> {
  const run = async (skip: number, take: number, order: string[]) => {
    const { counts } = page
    const collector = collectNames({ skip, take, counts, mayCount: (name) => mayCount(context.workspace, scope, name) })
    const mode = counts ? '--count' : '--files-with-matches'
    const all = ['--null', mode, '--with-filename', ...order, ...args]
    const finished = await runSplit(context, scope, all, 0, MAX_NAME_BYTES, {
      onMessage: collector.onPiece,
      onTooLong: () => {
        throw new Error('ripgrep named a file with a longer name than systems allow')
      },
    })
    if (!finished.stopped) collector.finish()
    return { collector, finished }
  }
  if (page.offset + page.limit < PARALLEL_NAMES) {
    const { collector, finished } = await run(0, PARALLEL_NAMES, [])
    if (!collector.more) {
      const { total, matches, badNames } = collector
      const more = total > page.offset + page.limit
      const files = sortByPath(collector.files).slice(page.offset)
      return { files, total, matches, more, badNames, cut: 0, unreadable: finished.unreadable }
    }
  }
  const { collector, finished } = await run(page.offset, page.limit, ['--sort', 'path'])
  const { files, more, badNames } = collector
  const known = more ? {} : { total: collector.total, matches: collector.matches }
  return {
    total: undefined,
    matches: undefined,
    ...known,
    files,
    more,
    badNames,
    cut: 0,
    unreadable: finished.unreadable,
  }
}

async function runSplit(
  context: Context,
  scope: Scope,
  args: string[],
  separator: number,
  maxBytes: number,
  reader: { onMessage(piece: Buffer): boolean; onTooLong(start: Buffer): boolean },
): Promise<Finished> {
  let go = true
  const splitter = createSplitter({
    separator,
    maxBytes,
    onPiece: (piece) => {
      if (go) go = reader.onMessage(piece)
    },
    onTooLong: (start) => {
      if (go) go = reader.onTooLong(start)
    },
  })
  const finished = await runRipgrep(context, scope, args, (chunk) => {
    splitter.push(chunk)
    return go
  })
  // A count stands after the last NUL.
  if (go) splitter.end()
  return finished
}

/** Drops the first `count` matches and what stands before the one after them. */
function skipMatches(files: readonly FileHits[], count: number): FileHits[] {
  let left = count
  const rest: FileHits[] = []
  for (const file of files) {
    let from = 0
    for (let at = 0; at < file.lines.length && left > 0; at++) {
      if (file.lines[at]?.isMatch !== true) continue
      left -= 1
      from = at + 1
    }
    if (file.lines.slice(from).some((line) => line.isMatch))
      rest.push({ name: file.name, lines: file.lines.slice(from) })
  }
  return rest
}

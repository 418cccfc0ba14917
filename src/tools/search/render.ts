import { setImmediate } from 'node:timers/promises'
import { showName } from '../../workspace/list.js'
import type { ToolContext } from '../tool.js'
import { openCounted } from './check.js'
import type { FileHits, Line } from './hits.js'
import type { Scope } from './scope.js'
import { verifiedLines } from './verify.js'
import { windowLines } from './window.js'

export interface Rendered {
  text: string
  /** Matching lines in `text`. */
  matches: number
  files: number
  /** Matching lines of the page that were used up: shown, or left out because they changed. */
  used: number
  changed: number
}

export interface RenderOptions {
  /** Matching lines, at most. */
  limit: number
  /** Characters, at most; at least one file's first match is shown all the same. */
  maxText: number
  before: number
  after: number
}

/** Files between two turns of the event loop. */
const FILES_PER_TURN = 50

/** The page as text, each line checked against the file itself before it is shown. */
export async function renderHits(
  context: Pick<ToolContext, 'workspace' | 'signal'>,
  scope: Scope,
  files: readonly FileHits[],
  options: RenderOptions,
): Promise<Rendered> {
  const out: Rendered = { text: '', matches: 0, files: 0, used: 0, changed: 0 }
  for (const [index, file] of files.entries()) {
    if (out.used >= options.limit) break
    if (index % FILES_PER_TURN === FILES_PER_TURN - 1) await setImmediate()
    context.signal.throwIfAborted()
    const lines = takeMatches(file.lines, options.limit - out.used, options)
    const opened = openCounted(context.workspace, scope, file.name)
    let real: Line[] = []
    let display = ''
    try {
      if (opened !== undefined) {
        real = verifiedLines(opened, lines)
        display = opened.display
      }
    } finally {
      opened?.close()
    }
    const lost = countMatches(lines) - countMatches(real)
    out.used += lost
    out.changed += lost
    if (!real.some((line) => line.isMatch)) continue
    if (!renderFile(out, display, real, options)) break
  }
  return out
}

/** False where the text is full. */
function renderFile(out: Rendered, display: string, lines: readonly Line[], options: RenderOptions): boolean {
  let text = `${out.text === '' ? '' : '\n'}${showName(Buffer.from(display))}\n`
  let shown = 0
  let last: number | undefined
  const isFull = (more: string) =>
    out.matches + shown > 0 && out.text.length + text.length + more.length > options.maxText
  for (const line of lines) {
    const rows = rowsOf(line)
    const gap = options.before + options.after > 0 && last !== undefined && line.number !== last + 1 ? '  --\n' : ''
    const more = gap + rows.map((row) => `${row}\n`).join('')
    if (isFull(more)) {
      commit(out, text, shown)
      return false
    }
    text += more
    last = line.number === undefined ? undefined : line.number + rows.length - 1
    if (line.isMatch) shown += 1
  }
  commit(out, text, shown)
  return true
}

function commit(out: Rendered, text: string, shown: number): void {
  if (shown === 0) return
  out.text += text
  out.matches += shown
  out.used += shown
  out.files += 1
}

function rowsOf(line: Line): string[] {
  const mark = line.isMatch ? ':' : '-'
  if (line.window === undefined) return ['  ?: [a matching line of over 16 MB is not shown]']
  return windowLines(line.window).map((row, i) => `  ${(line.number ?? 0) + i}${mark} ${row}`)
}

/** The first `limit` matches and the lines that stand near enough to one of them. */
function takeMatches(lines: readonly Line[], limit: number, around: { before: number; after: number }): Line[] {
  const matches = lines.filter((line) => line.isMatch).slice(0, limit)
  const taken = new Set(matches)
  const near = (line: Line, match: Line): boolean => {
    const at = line.number ?? 0
    const first = match.number ?? 0
    const end = first + (match.window?.bytes.filter((byte) => byte === 0x0a).length ?? 0)
    return at >= first - around.before && at <= end + around.after
  }
  let next = 0
  return lines.filter((line) => {
    if (line.isMatch) {
      if (taken.has(line)) next += 1
      return taken.has(line)
    }
    return [matches[next - 1], matches[next]].some((match) => match !== undefined && near(line, match))
  })
}

function countMatches(lines: readonly Line[]): number {
  return lines.filter((line) => line.isMatch).length
}

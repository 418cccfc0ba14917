import { dirname } from 'node:path'
import type { Subject } from '../policy/rules.js'

/** What "the same kind" of a call is: covered by one approval for the session, or by one rule (AP-04). */
export interface Kind {
  /** As it is kept and compared. */
  key: string
  /** The pattern of the rule that "always" makes. */
  pattern: string
}

/**
 * The kinds of a call; an approval for the session has to cover all of them. A file's kind is its folder and tool, a command's
 * each exact prefix, any other tool's its name.
 * @param prefixes of a command: program and subcommand of each simple command; undefined where the script cannot be told apart,
 * which no approval but "once" covers.
 */
export function kindsOf(subject: Pick<Subject, 'tool' | 'targets'>, prefixes?: readonly string[] | null): Kind[] {
  const { tool, targets } = subject
  if (prefixes === null) return []
  if (prefixes !== undefined) {
    return unique(prefixes.map((prefix) => ({ key: `${tool}(${prefix})`, pattern: `${tool}(${prefix} *)` })))
  }
  if (targets.length === 0) return [{ key: tool, pattern: tool }]
  return unique(
    targets.map(({ real }) => {
      const folder = dirname(real)
      return { key: `${tool}:${folder}`, pattern: `${tool}(${escapeGlob(folder === '/' ? '' : folder)}/*)` }
    }),
  )
}

function unique(kinds: readonly Kind[]): Kind[] {
  return [...new Map(kinds.map((kind) => [kind.key, kind])).values()]
}

/** A folder's name is not a pattern: its signs stand for themselves. */
function escapeGlob(path: string): string {
  return path.replace(/[\\*?[]/g, '\\$&')
}

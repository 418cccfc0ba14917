import { isUtf8 } from 'node:buffer'
import { KikiError } from '../../lib/errors.js'
import { createSplitter } from '../../lib/json-lines.js'
import type { ToolContext } from '../tool.js'
import { statCounted } from './check.js'
import { withoutDot } from './hits.js'
import { runRipgrep } from './ripgrep.js'
import { inScope, type Scope, scopeArgs } from './scope.js'

export interface ListedFile {
  /** Relative to the scope's folder. */
  name: string
  /** Last change, in ms since 1970. */
  modified: number
}

export interface ListedFiles {
  /** Newest first; the same moment: by path. */
  files: ListedFile[]
  badNames: number
  unreadable: number
}

const MAX_FILES = 500_000
const MAX_NAME_BYTES = 64 * 1024

/**
 * Every file of the scope, by `rg --files`. Output is read chunk by chunk, so other work goes on meanwhile.
 * @throws KikiError `too_large` above 500,000 matching files.
 */
export async function listFiles(
  context: Pick<ToolContext, 'processes' | 'signal' | 'workspace'>,
  scope: Scope,
): Promise<ListedFiles> {
  const files: ListedFile[] = []
  let badNames = 0
  const splitter = createSplitter({
    separator: 0,
    maxBytes: MAX_NAME_BYTES,
    onPiece: (piece) => {
      const name = withoutDot(piece.toString('utf8'))
      if (!inScope(scope, name)) return
      if (!isUtf8(piece)) {
        badNames += 1
        return
      }
      const modified = statCounted(context.workspace, scope, name)
      if (modified !== undefined) files.push({ name, modified })
    },
    onTooLong: () => {
      throw new Error('ripgrep named a file with a longer name than systems allow')
    },
  })
  const finished = await runRipgrep(
    context,
    scope,
    ['--files', '--null', ...scopeArgs(scope, undefined), '--', '.'],
    (chunk) => {
      splitter.push(chunk)
      return files.length <= MAX_FILES
    },
  )
  if (finished.stopped) {
    throw new KikiError('too_large', `More than ${MAX_FILES} files match.`, { hint: 'Use a narrower pattern or path.' })
  }
  files.sort((a, b) => b.modified - a.modified || (a.name < b.name ? -1 : 1))
  return { files, badNames, unreadable: finished.unreadable }
}

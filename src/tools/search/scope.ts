import path from 'node:path'
import { KikiError } from '../../lib/errors.js'
import { type OpenedDirectory, openDirectory, openFile } from '../../workspace/files.js'
import { showName } from '../../workspace/list.js'
import type { Workspace } from '../../workspace/workspace.js'
import { compileGlob, type Glob } from './glob-match.js'

/** Where and in what a search looks. */
export interface Scope {
  /** Held open, so that a folder swapped for another cannot redirect the search. */
  folder: OpenedDirectory
  /** The only file to search in `folder`, where the path named a file. */
  file?: string
  /** Names must match (or, with `exclude`, must not). */
  glob?: Glob
  exclude: boolean
  hidden: boolean
  ignored: boolean
  /** Kiki's home, relative to `folder`, where it lies inside. */
  home?: string
}

export interface ScopeArgs {
  path?: string | undefined
  glob?: string | undefined
  hidden: boolean
  ignored: boolean
}

/**
 * Resolves the folder by the safe walk; `path` is literal, only `glob` is a pattern. Folders that the glob spells out
 * become part of the folder, so that hidden and ignored ones that are named are searched. Close `folder` afterwards.
 * @throws KikiError as `openDirectory` and `compileGlob`.
 */
export function openScope(workspace: Workspace, args: ScopeArgs): Scope {
  const exclude = args.glob?.startsWith('!') ?? false
  const glob = args.glob === undefined ? undefined : compileGlob(exclude ? args.glob.slice(1) : args.glob)
  const from = args.path ?? '.'
  const found = openFolderOrParent(workspace, glob === undefined || exclude ? from : join(from, glob.base))
  const home = insideOf(found.folder.path, workspace.home)
  return {
    ...found,
    ...(glob === undefined ? {} : { glob }),
    exclude,
    hidden: args.hidden,
    ignored: args.ignored,
    ...(home === undefined ? {} : { home }),
  }
}

/** ripgrep's arguments for the scope; run it in the scope's folder and search `.`. */
export function scopeArgs(scope: Scope, type: string | undefined): string[] {
  const args: string[] = []
  if (scope.file !== undefined) {
    // By a glob, not by name: a file named outright would be followed if it became a link, and waited for if a pipe.
    args.push('--max-depth', '1', '--glob', `/${escapeGlob(scope.file)}`)
  } else {
    const showHidden = looksIntoHidden(scope)
    if (showHidden) args.push('--hidden')
    // ripgrep takes a matching type as a wish to see hidden files too.
    else if (type !== undefined) args.push('--glob', '!.*')
    if (showHidden && !namesGit(scope)) args.push('--glob', '!.git')
    if (scope.ignored) args.push('--no-ignore')
    if (scope.home !== undefined) args.push('--glob', `!/${escapeGlob(scope.home)}`)
  }
  if (type !== undefined) args.push('--type', type)
  else if (scope.glob !== undefined && !scope.exclude) {
    // Not `--glob`: that would bring back ignored files. A type only narrows.
    for (const glob of scope.glob.nameGlobs) args.push('--type-add', `kiki:${glob}`)
    if (scope.glob.nameGlobs.length > 0) args.push('--type', 'kiki')
  }
  return args
}

/** Whether a path that ripgrep reports (relative to the folder) is to be shown at all. */
export function inScope(scope: Scope, name: string): boolean {
  const { home, glob } = scope
  if (name.startsWith('/') || name.split('/').includes('..')) return false
  if (home !== undefined && (name === home || name.startsWith(`${home}/`))) return false
  if (scope.file !== undefined) return name === scope.file
  if (glob === undefined) return true
  if (!scope.exclude) return glob.matches(name, scope.hidden)
  // What is left out may lie anywhere, so the folder is not narrowed to the pattern's base.
  const base = glob.base === '' ? '' : `${glob.base}/`
  return !(name.startsWith(base) && glob.matches(name.slice(base.length), true))
}

/** What was not looked at, and the arguments that include it; '' where nothing was left out. */
export function skippedNote(scope: Scope, contents: boolean): string {
  if (scope.file !== undefined) return ''
  const parts: string[] = []
  const hidden = looksIntoHidden(scope)
  if (!hidden) parts.push('hidden files (hidden: true)')
  if (hidden && !namesGit(scope)) parts.push('.git (name it in path)')
  if (!scope.ignored) parts.push('files that .gitignore or .ignore exclude (ignored: true)')
  if (contents) parts.push('binary files', 'files that look like secrets (Read one: the owner is asked)')
  if (scope.home !== undefined) parts.push("Kiki's own home")
  parts.push('links')
  return `Not searched: ${parts.join(', ')}.`
}

/** The scope's place as answers name it. */
export function placeName(scope: Scope): string {
  const { display } = scope.folder
  if (scope.file !== undefined) return showName(Buffer.from(display === '.' ? scope.file : `${display}/${scope.file}`))
  return display === '.' ? 'the workspace' : showName(Buffer.from(display))
}

function looksIntoHidden(scope: Scope): boolean {
  return scope.hidden || (scope.glob?.namesHidden === true && !scope.exclude)
}

function namesGit(scope: Scope): boolean {
  return scope.glob?.literalNames.has('.git') === true && !scope.exclude
}

function openFolderOrParent(workspace: Workspace, from: string): { folder: OpenedDirectory; file?: string } {
  try {
    return { folder: openDirectory(workspace, from) }
  } catch (error) {
    if (!(error instanceof KikiError) || error.code !== 'invalid_arguments') throw error
    // Not a folder. A regular file is searched alone; anything else is refused here, by name.
    const file = openFile(workspace, from)
    file.close()
    return { folder: openDirectory(workspace, path.dirname(file.path)), file: path.basename(file.path) }
  }
}

/** Not `path.join`, which would resolve `..` by spelling alone. */
function join(folder: string, base: string): string {
  if (base === '') return folder
  return base.startsWith('/') ? base : `${folder}/${base}`
}

function insideOf(folder: string, inner: string): string | undefined {
  const prefix = folder.endsWith('/') ? folder : `${folder}/`
  return inner.startsWith(prefix) ? inner.slice(prefix.length) : undefined
}

function escapeGlob(name: string): string {
  return name.replace(/[^A-Za-z0-9/._\-\u{80}-\u{10ffff}]/gu, '\\$&')
}

import { realpathSync } from 'node:fs'
import { isAbsolute, relative, sep } from 'node:path'
import { KikiError, systemCode } from '../lib/errors.js'
import { plainWindowsPath } from '../lib/windows-path.js'
import type { Workspace } from './workspace.js'

/** Where a walk begins: a root, and the names to follow from there (`..` included). */
export interface Start {
  root: string
  names: string[]
}

/**
 * Finds the root that a path begins in; nothing below it is looked at yet.
 * @throws KikiError `invalid_arguments`, `path_denied`.
 */
export function startOf(workspace: Workspace, asked: string): Start {
  const problem = problemOf(asked)
  if (problem !== undefined) throw notOnePath(problem)
  const path = platformPath(asked, process.platform)
  if (!isAbsolute(path)) return { root: workspace.root, names: namesOf(path) }
  const names = namesOf(path)
  return startOfAbsolute(workspace, names) ?? startOfAlias(workspace, names) ?? refuseOutside(workspace, path)
}

/**
 * A path in the spelling that its platform's own calls take: on Windows many others mean the same file, or another than they seem to
 * (PA-04); elsewhere every spelling is itself.
 * @throws KikiError `invalid_arguments`.
 */
export function platformPath(path: string, platform: NodeJS.Platform): string {
  if (platform !== 'win32') return path
  const plain = plainWindowsPath(path)
  if ('problem' in plain) throw notOnePath(plain.problem)
  return plain.path
}

function notOnePath(problem: string): KikiError {
  return new KikiError('invalid_arguments', `The path ${problem}.`, { hint: 'Give the path of one file or folder.' })
}

/** The root that absolute names lie in by whole components (`/srv/app` does not admit `/srv/app-x`), if any. */
export function startOfAbsolute(workspace: Workspace, names: readonly string[]): Start | undefined {
  for (const root of workspace.roots) {
    const own = namesOf(root)
    if (own.every((name, index) => names[index] === name)) return { root, names: names.slice(own.length) }
  }
  return undefined
}

/** The names that `..` from the root itself leads to: exact, because a root's own path holds no link. */
export function namesAbove(root: string, rest: readonly string[]): string[] {
  const base = namesOf(root)
  let ups = 1
  while (rest[ups - 1] === '..') ups += 1
  return [...base.slice(0, Math.max(0, base.length - ups)), ...rest.slice(ups - 1)]
}

/**
 * Another spelling of a root (a link above it, another letter case): resolved by the operating system up to where it is
 * inside. Safe to race, because the walk begins again at the root and trusts nothing of it.
 */
function startOfAlias(workspace: Workspace, names: readonly string[]): Start | undefined {
  for (let end = 1; end <= names.length && names[end - 1] !== '..'; end += 1) {
    const real = realPathOf(`${sep}${names.slice(0, end).join(sep)}`)
    if (real === undefined) return undefined
    const inside = startOfAbsolute(workspace, namesOf(real))
    if (inside !== undefined) return { root: inside.root, names: [...inside.names, ...names.slice(end)] }
  }
  return undefined
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch (error) {
    // Whatever stands outside is not told apart: missing and unreadable are both simply outside.
    if (systemCode(error) !== undefined) return undefined
    throw error
  }
}

function problemOf(path: string): string | undefined {
  if (path === '') return 'is empty'
  if (path.includes('\0')) return 'holds a NUL byte'
  if (/\p{Surrogate}/u.test(path)) return 'holds half a character (a lone surrogate)'
  if (path.length > 4096) return 'is longer than 4,096 characters'
  return undefined
}

export function namesOf(path: string): string[] {
  return path.split(sep).filter((name) => name !== '' && name !== '.')
}

/** As clients see a path: relative to the workspace where it lies inside, else absolute. */
export function displayOf(workspace: Workspace, path: string): string {
  if (path === workspace.root) return '.'
  return path.startsWith(workspace.root + (workspace.root === sep ? '' : sep)) ? relative(workspace.root, path) : path
}

/**
 * @param link the link on the way that led out, where it was not the path itself.
 * @throws KikiError `path_denied`; says what is inside.
 */
export function refuseOutside(workspace: Workspace, path: string, link?: string): never {
  const says = link === undefined ? `"${path}" is outside` : `"${link}" is a link that leads outside`
  throw new KikiError('path_denied', `${says} this session's workspace.`, {
    hint: `Use a path inside ${workspace.roots.map((root) => `"${root}"`).join(' or ')}.`,
    data: { path },
  })
}

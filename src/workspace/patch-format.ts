import { KikiError } from '../lib/errors.js'

/** One line of a hunk, without its line end. */
export interface PatchLine {
  op: ' ' | '-' | '+'
  text: string
  /** `none`: the patch says that no line end follows. */
  eol: 'lf' | 'crlf' | 'none'
}

export interface Hunk {
  /** Line of the patch where it begins, from 1. */
  at: number
  /** Its `@@` line as it stands there. */
  header: string
  lines: PatchLine[]
  /** 1-based first line in the old text; undefined where the patch names none. */
  oldStart?: number
  /** Lines that stand before it in the file, one after the other. */
  anchors: string[]
  /** It reaches to the end of the file. */
  atEnd: boolean
  /** Its header counts other lines than are there. */
  miscounted: boolean
}

/** What a patch does with one file. */
export interface PatchSection {
  act: 'add' | 'update' | 'delete'
  /** As the patch spells it; of a new file its own, else that of before. */
  path: string
  /** Where an updated file moves to. */
  to?: string
  /** The file that a new one begins as. */
  copyOf?: string
  /** The file may, or may not, be run as a program afterwards; undefined to leave that. */
  executable?: boolean
  /** Of a deletion: whether the hunks show the whole content, so that it can be compared. */
  showsContent: boolean
  hunks: Hunk[]
  /** Line of the patch where it begins, from 1. */
  at: number
}

/** What is left to read of a patch; `at` counts from 0. */
export interface Reader {
  lines: readonly string[]
  at: number
}

/** A hunk's line from its text in the patch; a CR at its end is its line end's. */
export function patchLine(op: PatchLine['op'], text: string): PatchLine {
  return text.endsWith('\r') ? { op, text: text.slice(0, -1), eol: 'crlf' } : { op, text, eol: 'lf' }
}

/** @param line of the patch, from 1; undefined where the whole is meant. */
export function patchProblem(line: number | undefined, says: string, hint?: string): KikiError {
  const where = line === undefined ? '' : `line ${line} of the patch: `
  return new KikiError('invalid_arguments', `The patch cannot be read: ${where}${says}. Nothing was changed.`, {
    hint: hint ?? 'Send a unified diff, or *** Begin Patch … *** End Patch.',
    ...(line === undefined ? {} : { data: { patch_line: line } }),
  })
}

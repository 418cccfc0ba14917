import { type PatchSection, patchProblem, type Reader } from './patch-format.js'
import { type GitHeader, isNamePair, nameInHeader, readGitHeader, strippedPair } from './patch-parse-git.js'
import { readHunk } from './patch-parse-hunk.js'

/** After these anything may stand up to the next file: mails and logs have words between diffs. */
const PROSE = /^(-- ?$|commit |From |Index: |Only in |diff |=+$)/

/**
 * Reads unified diffs, those of git included. What stands between files is passed over only where diffs have it; a line that may
 * have been meant as part of a hunk is refused.
 * @throws KikiError `invalid_arguments` with the line of the patch.
 */
export function parseUnified(lines: readonly string[]): PatchSection[] {
  const reader: Reader = { lines, at: 0 }
  const sections: PatchSection[] = []
  let prose = true
  for (let line = lines[0]; line !== undefined; line = lines[reader.at]) {
    const git = line.startsWith('diff --git ')
    if (git || isNamePair(lines, reader.at)) {
      sections.push(git ? readGitSection(reader) : readPlainSection(reader))
      prose = false
      continue
    }
    if (PROSE.test(line)) prose = true
    else if (line.startsWith('@@ ') || (!prose && line.trim() !== '')) throw stray(line, reader.at + 1)
    if (/^(Binary files |GIT binary patch)/.test(line)) throw binary(reader.at + 1, line)
    reader.at++
  }
  if (sections.length === 0) {
    throw patchProblem(undefined, 'it has no header of a file (--- and +++, diff --git, or *** Begin Patch)')
  }
  return sections
}

function stray(line: string, at: number): Error {
  if (line.startsWith('@@ '))
    return patchProblem(at, 'a hunk stands without the file that it is for', 'Put --- and +++ before it.')
  return patchProblem(
    at,
    "it is neither part of a hunk (' ', '+', '-') nor the header of a file",
    "Put ' ' before each line that stays, and correct the counts in the hunk's header.",
  )
}

function readPlainSection(reader: Reader): PatchSection {
  const at = reader.at + 1
  const pair = readNames(reader)
  const names = strippedPair(pair, false)
  return finish(reader, { ...sectionOf(names, at), ...(names.old === undefined ? { act: 'add' } : {}) })
}

function readGitSection(reader: Reader): PatchSection {
  const at = reader.at + 1
  const header = readGitHeader(reader)
  const pair = ownNames(reader, header) ? readNames(reader) : header.names
  const line = reader.lines[reader.at]
  if (line !== undefined && /^(Binary files |GIT binary patch)/.test(line)) {
    throw binary(at, nameInHeader(pair, header) ?? line)
  }
  if (header.renamed !== undefined) {
    const { from, to, copy } = header.renamed
    const moved = copy ? { act: 'add' as const, path: to, copyOf: from } : { act: 'update' as const, path: from, to }
    return finish(reader, { ...moved, ...rights(header), showsContent: false, hunks: [], at })
  }
  if (pair === undefined) throw patchProblem(at, 'the names in it cannot be told apart', 'Add --- and +++ lines.')
  const section = sectionOf(strippedPair(pair, true), at)
  const act = header.isNew ? 'add' : header.isDeleted ? 'delete' : section.act
  return finish(reader, { ...section, act, ...(act === 'delete' ? {} : rights(header)) })
}

/** Whether the `---` and `+++` that stand here belong to this header: one without content may be followed by those of another file. */
function ownNames(reader: Reader, header: GitHeader): boolean {
  if (!isNamePair(reader.lines, reader.at)) return false
  const names = header.names && strippedPair(header.names, true)
  const { renamed } = header
  const own = renamed === undefined ? names && [names.old, names.fresh] : [renamed.from, renamed.to]
  const { old, fresh } = strippedPair(readNames({ ...reader }), true)
  return own === undefined || own.includes(fresh ?? old)
}

function rights({ executable, modeChanges }: { executable?: boolean; modeChanges: boolean }): { executable?: boolean } {
  return executable === undefined || !modeChanges ? {} : { executable }
}

function readNames(reader: Reader): { old: string; fresh: string } {
  const [old = '', fresh = ''] = reader.lines.slice(reader.at, reader.at + 2)
  reader.at += 2
  return { old: old.slice(4), fresh: fresh.slice(4) }
}

function sectionOf({ old, fresh }: { old?: string; fresh?: string }, at: number): PatchSection {
  const base = { showsContent: true, hunks: [], at }
  if (old === undefined && fresh === undefined) throw patchProblem(at, 'both names are /dev/null')
  if (old === undefined) return { act: 'add', path: fresh ?? '', ...base }
  if (fresh === undefined) return { act: 'delete', path: old, ...base }
  if (old !== fresh && old !== `${fresh}.orig` && old !== `${fresh}~`) {
    throw patchProblem(
      at,
      `the names differ ("${old}" and "${fresh}")`,
      'Give one name twice; for a rename use the "rename from" and "rename to" of git, or *** Move to:.',
    )
  }
  return { act: 'update', path: fresh, ...base }
}

function finish(reader: Reader, section: PatchSection): PatchSection {
  while (reader.lines[reader.at]?.startsWith('@@')) section.hunks.push(readHunk(reader))
  const { act, to, executable, copyOf, hunks, at } = section
  if (act === 'add' && copyOf === undefined) requireOnly(section, '+')
  if (act === 'delete') requireOnly(section, '-')
  if (act === 'update' && hunks.length === 0 && to === undefined && executable === undefined) {
    throw patchProblem(at, `"${section.path}" has no hunk`)
  }
  return section
}

/** A new file has only lines that come, a deleted one only lines that go. */
function requireOnly({ path, hunks }: PatchSection, op: '+' | '-'): void {
  const [first, second] = hunks
  if (second !== undefined)
    throw patchProblem(second.at, `"${path}" can have one hunk only, because it is new or deleted`)
  const other = first?.lines.find((line) => line.op !== op)
  if (other !== undefined) {
    throw patchProblem(
      first?.at,
      `"${path}" is ${op === '+' ? 'new' : 'deleted'}, so each line has to begin with '${op}'`,
    )
  }
}

function binary(at: number, name: string): Error {
  return patchProblem(at, `"${name}" is patched as binary, which is not supported`, 'Leave it out of the patch.')
}

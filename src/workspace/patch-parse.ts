import { KikiError } from '../lib/errors.js'
import { hasLoneSurrogate } from './encoding.js'
import { type PatchSection, patchProblem } from './patch-format.js'
import { parseEnvelope } from './patch-parse-envelope.js'
import { parseUnified } from './patch-parse-unified.js'

/** Characters of one patch. */
export const MAX_PATCH_CHARS = 8 * 1024 * 1024
/** Sections of one patch: each is walked to, judged and reported. */
export const MAX_SECTIONS = 500

/**
 * Reads a patch of either form: unified diffs, also those of git, or `*** Begin Patch` (FI-10). Nothing is looked at on disk.
 * @throws KikiError `invalid_arguments` with the line of the patch that cannot be read, or for what is never applied: binary
 * patches, links and submodules; `too_large` beyond 8 Mi characters or 500 files.
 */
export function parsePatch(patch: string): PatchSection[] {
  if (patch.length > MAX_PATCH_CHARS) throw tooLong(`${patch.length} characters; at most ${MAX_PATCH_CHARS}`)
  if (hasLoneSurrogate(patch)) throw patchProblem(undefined, 'It holds half a character (a lone surrogate)')
  const lines = linesOf(patch)
  const first = lines.find((line) => line.trim() !== '')
  const sections = first?.trim() === '*** Begin Patch' ? parseEnvelope(lines) : parseUnified(lines)
  if (sections.length > MAX_SECTIONS) throw tooLong(`${sections.length} files; at most ${MAX_SECTIONS}`)
  return sections
}

/** A CR that ends every line, headers included, belongs to the way that the patch was sent, not to the files. */
function linesOf(patch: string): string[] {
  const lines = patch.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const sentWithCr = lines.length > 0 && lines.every((line) => line.endsWith('\r'))
  return sentWithCr ? lines.map((line) => line.slice(0, -1)) : lines
}

function tooLong(says: string): KikiError {
  return new KikiError('too_large', `The patch has ${says} are applied at once. Nothing was changed.`, {
    hint: 'Send it in several parts.',
  })
}

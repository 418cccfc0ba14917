/** Bytes of UTF-16 above which a script is not read: what people approve is shorter. */
export const SCRIPT_LIMIT = 32_768

// Everything invisible or that only looks like a blank: what the owner reads is then not what runs.
const INVISIBLE =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points are meant
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\u034F\u115F\u1160\u17B4\u17B5\u3164\uFFA0\u2800]/u
const VISIBLE_SPACES = /[ \t\n]/g
// An emoji is often several code points; inside one these two are no disguise.
const EMOJI_JOINERS = /(\p{Extended_Pictographic})(?:\uFE0F|\u200D\p{Extended_Pictographic})+/gu
const VARIATION = /[\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/u
const SUBSTITUTION = /`|\$\(|\$\{|[<>]\(/

/**
 * Reasons to refuse a script before it is parsed, on its text alone: what tree-sitter-bash and bash read
 * differently, or what a person cannot see. An empty list says that the text can be parsed.
 */
export function refusalsOfText(script: string): string[] {
  const reasons: string[] = []
  if (script.length > SCRIPT_LIMIT) reasons.push(`it is longer than ${SCRIPT_LIMIT} characters`)
  const visible = script.replace(EMOJI_JOINERS, '$1').replace(VISIBLE_SPACES, '')
  if (INVISIBLE.test(visible) || VARIATION.test(visible)) reasons.push('it has invisible or control characters')
  // Bash joins the lines first, so `$\<newline>(id)` is a substitution too; the parser does not see either.
  if (script.includes('\\\n') && SUBSTITUTION.test(script.replaceAll('\\\n', '')))
    reasons.push('it has a line continuation and a substitution')
  // The parser takes the two halves of a word for two words, bash for one.
  if (/[^\s]\\\n[^\s]/.test(script)) reasons.push('it has a line continuation within a word')
  if (script.endsWith('\\')) reasons.push('it ends in a backslash')
  return reasons
}

/** The text without what {@link refusalsOfText} objects to, so that the rest can still be shown and denied. */
export function withoutDisguise(script: string): string {
  let cleaned = ''
  for (const character of script.slice(0, SCRIPT_LIMIT).replaceAll('\\\n', '').replaceAll('\r', '\n')) {
    if (' \t\n'.includes(character)) cleaned += character
    else if (/\p{Zs}|\p{Zl}|\p{Zp}/u.test(character)) cleaned += ' '
    else if (!INVISIBLE.test(character) && !VARIATION.test(character)) cleaned += character
  }
  return cleaned.replace(/\\+$/, '')
}

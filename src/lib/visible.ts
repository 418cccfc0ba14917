/**
 * Text as a person must see it before deciding about it: what would hide or reorder other text (control, format, bidirectional and
 * private characters, tags, line separators, lone surrogates) stands as `\u{…}`, and so does a backslash that begins such a text
 * already, so that no two texts look alike; line feeds and tabs stay (GU-32).
 */
export function visible(text: string): string {
  return harmless(text.replace(/\\(?=u\{)/g, escapeCharacter))
}

/** As {@link visible}, for text that may have been made visible before: what is shown by it is left alone. */
export function harmless(text: string): string {
  return text.replace(HIDDEN, escapeCharacter)
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

const HIDDEN =
  /[\p{Cf}\p{Co}\p{Cn}\p{Surrogate}\p{Zl}\p{Zp}\u{115f}\u{1160}\u{3164}\u{ffa0}]|[\u{fe00}-\u{fe0f}]|[\u{e0100}-\u{e01ef}]|(?![\n\t])\p{Cc}/gu

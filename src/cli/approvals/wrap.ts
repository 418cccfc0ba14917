import { GUTTER, GUTTER_ON, type Line } from './words.js'

/**
 * Breaks lines into pieces of at most `width` columns, none of them cut off. Characters whose width terminals do not agree on count
 * as two columns: a line may end early, and never runs over the edge.
 */
export function wrapLines(lines: readonly Line[], width: number): Line[] {
  return lines.flatMap((line) => wrapLine(line, width))
}

function wrapLine(line: Line, width: number): Line[] {
  const room = Math.max(8, width - line.lead.length)
  if (line.text.length <= room && PLAIN.test(line.text)) return [line]
  const isContent = line.lead === GUTTER
  const next = isContent ? GUTTER_ON : ' '.repeat(line.lead.length)
  return pieces(line.text, room, !isContent).map((text, index) => ({
    ...line,
    lead: index === 0 ? line.lead : next,
    text,
  }))
}

const PLAIN = /^[\x20-\x7e]*$/

/** `words`: break at a space where there is one; what a client sent is broken anywhere, and no space of it is lost. */
function pieces(text: string, room: number, words: boolean): string[] {
  const found: string[] = []
  let piece = ''
  let used = 0
  for (const character of text) {
    const size = cells(character)
    if (used + size > room) {
      const space = words ? piece.lastIndexOf(' ') : -1
      const kept = space > room / 2 ? piece.slice(space + 1) : ''
      found.push(space > room / 2 ? piece.slice(0, space) : piece)
      piece = kept
      used = columnsOf(kept)
    }
    piece += character
    used += size
  }
  return [...found, piece]
}

/** Columns that a text takes at most. */
export function columnsOf(text: string): number {
  let sum = 0
  for (const character of text) sum += cells(character)
  return sum
}

function cells(character: string): number {
  const code = character.codePointAt(0) ?? 0
  const narrow = code < 0x1100 || (code >= 0x2010 && code < 0x2300) || (code >= 0x2500 && code < 0x25a0)
  return narrow ? 1 : 2
}

/** A text in at most `width` columns; what is left out shows as `…`. For lists, whose items are shown in full elsewhere. */
export function clipped(text: string, width: number): string {
  if (columnsOf(text) <= width) return text
  let kept = ''
  let used = 1
  for (const character of text) {
    used += cells(character)
    if (used > width) break
    kept += character
  }
  return `${kept}…`
}

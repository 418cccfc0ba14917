import { KikiError } from '../lib/errors.js'
import { runWhole, type Sliced } from '../lib/slices.js'
import {
  countLineEnds,
  type Detected,
  decode,
  detect,
  type Encoding,
  type Eol,
  encode,
  eolOf,
  hasLoneSurrogate,
  isAscii,
} from './encoding.js'
import { MAX_CHANGE_BYTES } from './files.js'
import { findText, lineNumbersOf, type Match, type Matches, replaceMatches } from './match.js'
import { nearestRegion } from './nearest.js'

/** Most places that one edit replaces. */
export const MAX_REPLACEMENTS = 1_000_000
/** Places that are counted to say how ambiguous a text is. */
const COUNTED = 1000
const LISTED_LINES = 20
/** Bytes of the file that are decoded to look for the nearest region. */
const HINT_BYTES = 1024 * 1024

export interface TextEdit {
  /** Literal. Empty only for a file that is absent or empty. */
  oldString: string
  /** Literal; its line ends become the file's where the file has one style. */
  newString: string
  /** Replaces every match, left to right, not overlapping. */
  replaceAll?: boolean
  /** Refuses unless exactly so many matches are there. */
  expectedCount?: number
}

export interface EditedText {
  bytes: Buffer
  encoding: Encoding
  count: number
  how: Matches['how']
  /** 1-based lines where the first matches began, in the text before the edit. */
  lines: number[]
}

/**
 * Applies one edit to a file's bytes (FI-07, FI-08). All that is not replaced stays byte for byte: line ends, byte
 * order mark, encoding, final newline.
 * @param current undefined where no file is there
 * @param display the file's name in messages
 * @throws KikiError `not_found` where the text is absent; `conflict` where several places match without `replaceAll` or
 * their number is not `expectedCount`; `invalid_arguments` where the edit changes nothing, cannot be written in the
 * file's encoding, or the file is binary; `too_large` beyond the limits on bytes and replacements
 */
export function applyEdit(current: Buffer | undefined, edit: TextEdit, display: string): EditedText {
  return runWhole(editSteps(current, edit, display))
}

/** {@link applyEdit} in steps: a million matches take their time. */
export function* editSteps(current: Buffer | undefined, edit: TextEdit, display: string): Sliced<EditedText> {
  checkArguments(edit, display)
  const bytes = current ?? Buffer.alloc(0)
  if (bytes.length > MAX_CHANGE_BYTES) {
    throw new KikiError(
      'too_large',
      `${display} has ${bytes.length} bytes; files up to ${MAX_CHANGE_BYTES} can be edited.`,
      {
        hint: 'Change it with a command.',
      },
    )
  }
  const file = textOf(bytes, display)
  if (edit.oldString === '') return fill(current, edit, file, display)
  checkEncodable(edit, file.encoding, display)
  const found = yield* findText(bytes, edit.oldString, file.encoding, {
    from: file.bom,
    overlapping: !edit.replaceAll,
    limit: edit.replaceAll ? MAX_REPLACEMENTS : COUNTED,
  })
  yield* checkCount(found, edit, bytes, file.encoding, display)
  const replacementOf = yield* replacementsFor(bytes, found, edit, file.encoding)
  const after = yield* replaceMatches(bytes, found.matches, replacementOf)
  if (after.equals(bytes))
    throw changesNothing(display, 'new_string equals what it replaces once its line ends follow the file')
  const places = found.matches.slice(0, LISTED_LINES).map((match) => match.start)
  return {
    bytes: after,
    encoding: file.encoding,
    count: found.matches.length,
    how: found.how,
    lines: yield* lineNumbersOf(bytes, places, file.encoding),
  }
}

function checkArguments(edit: TextEdit, display: string): void {
  if (hasLoneSurrogate(edit.oldString) || hasLoneSurrogate(edit.newString)) {
    throw new KikiError(
      'invalid_arguments',
      'old_string or new_string holds half of a surrogate pair, which no file can hold.',
      {
        hint: 'Send whole characters.',
      },
    )
  }
  if (edit.oldString === edit.newString) throw changesNothing(display, 'old_string and new_string are equal')
}

function changesNothing(display: string, why: string): KikiError {
  return new KikiError('invalid_arguments', `The edit changes nothing in ${display}: ${why}.`, {
    hint: 'Send the text as it shall be, or leave the edit out.',
  })
}

function textOf(bytes: Buffer, display: string): Extract<Detected, { text: true }> {
  const file = detect(bytes, true)
  if (file.text) return file
  throw new KikiError('invalid_arguments', `${display} is a binary file (${file.type}) and cannot be edited as text.`, {
    hint: 'Only text can be edited; Write can replace the whole file.',
  })
}

/** An empty `old_string` stands for the whole of a file in which nothing is. */
function fill(
  current: Buffer | undefined,
  edit: TextEdit,
  file: Extract<Detected, { text: true }>,
  display: string,
): EditedText {
  if (current !== undefined && current.length > file.bom) {
    throw new KikiError('invalid_arguments', `old_string is empty, but ${display} is not.`, {
      hint: 'Give the text to replace; an empty old_string only fills a file that is new or empty.',
    })
  }
  if (edit.expectedCount !== undefined && edit.expectedCount !== 1) {
    throw new KikiError('conflict', `expected_count is ${edit.expectedCount}, but an empty file is filled once.`, {
      hint: 'Leave expected_count out.',
    })
  }
  const bytes = Buffer.concat([current ?? Buffer.alloc(0), encode(edit.newString, file.encoding)])
  return { bytes, encoding: file.encoding, count: 1, how: 'exact', lines: [1] }
}

function checkEncodable(edit: TextEdit, encoding: Encoding, display: string): void {
  if (encoding !== 'unknown-8bit' || (isAscii(edit.oldString) && isAscii(edit.newString))) return
  throw new KikiError(
    'invalid_arguments',
    `${display} is not UTF-8 but some other 8-bit encoding that it does not name, so only ASCII text can be edited in it.`,
    { hint: 'Use ASCII in old_string and new_string, or convert the file with a command (iconv) first.' },
  )
}

function* checkCount(found: Matches, edit: TextEdit, bytes: Buffer, encoding: Encoding, display: string): Sliced<void> {
  const count = found.matches.length
  if (count === 0) throw notFound(bytes, edit.oldString, encoding, display)
  if (edit.replaceAll && found.more) {
    throw new KikiError('too_large', `old_string stands more than ${MAX_REPLACEMENTS} times in ${display}.`, {
      hint: 'Give a longer old_string, or change the file with a command.',
    })
  }
  if (encoding === 'unknown-8bit') yield* checkWholeCharacters(bytes, found.matches, display)
  const wrong = edit.expectedCount !== undefined && (found.more || edit.expectedCount !== count)
  if (!wrong && (edit.replaceAll || count === 1)) return
  const lines = yield* lineNumbersOf(
    bytes,
    found.matches.slice(0, LISTED_LINES).map((match) => match.start),
    encoding,
  )
  const more = count > lines.length ? ', …' : ''
  const times = `${found.more ? `more than ${count}` : count} time${count === 1 ? '' : 's'}`
  const tolerant = found.how === 'exact' ? '' : ` (${describeTolerance(found.how)})`
  const expected = wrong ? `, not ${edit.expectedCount} as expected` : ''
  throw new KikiError(
    'conflict',
    `old_string stands ${times}${tolerant} in ${display}${expected}: line${count === 1 ? '' : 's'} ${lines.join(', ')}${more}. Nothing was changed.`,
    {
      hint: wrong
        ? 'Read these lines, then correct expected_count or old_string.'
        : 'Add lines around it to old_string so that it is unique, or set replace_all.',
      data: { count, lines },
    },
  )
}

/** In a legacy encoding an ASCII letter behind a high byte may be the second half of a character (Shift_JIS, GBK, Big5). */
function* checkWholeCharacters(bytes: Buffer, matches: readonly Match[], display: string): Sliced<void> {
  for (const { start } of matches) {
    if ((bytes[start] ?? 0) < 0x30 || (bytes[start - 1] ?? 0) < 0x80) continue
    const [line] = yield* lineNumbersOf(bytes, [start], 'unknown-8bit')
    throw new KikiError(
      'invalid_arguments',
      `In line ${line} of ${display} old_string begins right behind a non-ASCII byte and could be half of a character.`,
      { hint: 'Begin old_string at another place, or convert the file with a command (iconv) first.' },
    )
  }
}

/** In words, for results and messages. */
export function describeTolerance(how: Exclude<Matches['how'], 'exact'>): string {
  return how === 'line_endings'
    ? 'matched without regard to line endings'
    : 'matched without regard to white space at line ends and typographic quotes'
}

function notFound(bytes: Buffer, wanted: string, encoding: Encoding, display: string): KikiError {
  const near = nearestRegion(decode(bytes.subarray(bomOf(bytes), HINT_BYTES), encoding), wanted)
  const where = bytes.length > HINT_BYTES ? ` in its first ${HINT_BYTES} bytes` : ''
  const missing = `old_string is not in ${display}. Nothing was changed.`
  if (near === undefined) {
    return new KikiError('not_found', `${missing} Nothing like it is there${where}.`, {
      hint: 'Read the file and copy the text exactly, without the line numbers.',
    })
  }
  const lines = near.firstLine === near.lastLine ? `line ${near.firstLine}` : `lines ${near.firstLine}-${near.lastLine}`
  const why = near.difference === undefined ? '' : `; ${near.difference}`
  const percent = Math.round(near.likeness * 100)
  return new KikiError(
    'not_found',
    `${missing} The nearest${where} is ${lines} (${percent} % alike${why}):\n${near.shown}`,
    {
      hint: 'Copy the text exactly as it stands there, without the line numbers.',
      data: { nearest: { from: near.firstLine, to: near.lastLine, likeness: near.likeness } },
    },
  )
}

/** A byte order mark is no part of the text that the hint shows. */
function bomOf(bytes: Buffer): number {
  const file = detect(bytes, false)
  return file.text ? file.bom : 0
}

/** What stands in a match's place: the new text, with the line ends that belong there. */
function* replacementsFor(
  bytes: Buffer,
  found: Matches,
  edit: TextEdit,
  encoding: Encoding,
): Sliced<(match: Match) => Buffer> {
  const literal = encode(edit.newString, encoding)
  if (!edit.newString.includes('\n')) return () => literal
  const style = yield* eolOfBytes(bytes, encoding)
  const lf = encode(edit.newString.replaceAll('\r\n', '\n'), encoding)
  const crlf = encode(edit.newString.replace(/\r?\n/g, '\r\n'), encoding)
  const inStyle = (eol: Eol) => (eol === 'lf' ? lf : eol === 'crlf' ? crlf : literal)
  if (style !== 'mixed') return () => inStyle(style)
  // In a mixed file an exact match says what it means; any other one follows the lines that it replaces.
  if (found.how === 'exact') return () => literal
  return ({ start, end }) => inStyle(runWhole(eolOfBytes(bytes.subarray(start, end), encoding)))
}

/** Bytes of which the line ends are counted between two places where the work may pause; an even number. */
const COUNTED_BYTES = 256 * 1024

/** The line ends of a whole text, counted in steps. */
export function* eolOfBytes(bytes: Buffer, encoding: Encoding): Sliced<Eol> {
  const ends = { lf: 0, crlf: 0, cr: false }
  for (let from = 0; from < bytes.length; from += COUNTED_BYTES) {
    if (from > 0) yield
    countLineEnds(bytes.subarray(from, from + COUNTED_BYTES), encoding, ends)
  }
  return eolOf(ends)
}

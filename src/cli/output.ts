import Table from 'cli-table3'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Io } from './io.js'

/** What a command says (owner.md, "Command line"). */
export interface Output {
  /** The command's one result: the JSON value with `--json`, else the text. */
  result(value: unknown, text: () => string): Promise<void>
  /** The result of a command that found something not in order: it is printed as any other, and the exit code is 1. */
  failure(value: unknown, text: () => string): Promise<void>
  /** Of what was printed: 1 after a `failure`. */
  exitCode(): 0 | 1
  /** One of many lines of a command that goes on: a JSON value on one line with `--json`, else the text. */
  line(value: unknown, text: () => string): Promise<void>
  /** Progress and warnings: on stderr, never in the result. */
  note(text: string): Promise<void>
  /** A piece of a result that is too long to be held: as it is, on stdout. */
  piece(text: string): Promise<void>
  /** Columns to fit into, or undefined where nobody looks at a terminal. */
  columns: number | undefined
}

export function createOutput(io: Io, { json }: { json: boolean }): Output {
  let code: 0 | 1 = 0
  const result: Output['result'] = (value, text) => io.out(`${json ? toJson(value) : text()}\n`)
  return {
    result,
    failure(value, text) {
      code = 1
      return result(value, text)
    },
    exitCode: () => code,
    line: (value, text) => io.out(`${json ? toJson(value, 0) : text()}\n`),
    note: (text) => io.err(`${text}\n`),
    piece: (text) => io.out(text),
    columns: io.columns,
  }
}

/** Says what failed and what to do next on stderr; with `--json` also as `{error}` on stdout. */
export async function reportError(io: Io, error: unknown, { json }: { json: boolean }): Promise<void> {
  const { code, message, hint, data } = describe(error)
  const next = hint === undefined ? '' : `${printable(hint, { lines: true })}\n`
  await io.err(`error: ${printable(message, { lines: true })}\n${next}`)
  if (json) await io.out(`${toJson({ error: { code, message, hint, data } })}\n`)
}

function describe(error: unknown): Pick<KikiError, 'code' | 'message' | 'hint' | 'data'> {
  if (error instanceof KikiError) return error
  return {
    code: 'internal_error',
    message: `Unexpected failure: ${messageOf(error)}`,
    hint: 'This is a fault of Kiki; logs/kiki.log in the home may show its cause.',
    data: undefined,
  }
}

/** A table that fits `columns`; control characters in cells are shown, never sent to the terminal. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], columns?: number): string {
  const cells = rows.map((row) => row.map((cell) => printable(cell)))
  const widths = columns === undefined ? undefined : fit(head, cells, columns)
  const drawn = new Table({
    head: [...head],
    style: { head: [], border: [], compact: true },
    ...(widths && { colWidths: widths, wordWrap: true, wrapOnWordBoundary: false }),
  })
  drawn.push(...cells)
  return drawn.toString()
}

/** One thing's fields, a line each; fields without a value are left out. */
export function facts(value: Record<string, unknown>, columns?: number): string {
  const rows = Object.entries(value).flatMap(([name, field]) => {
    return field === null || field === undefined ? [] : [[name, textOf(field)]]
  })
  return table(['Field', 'Value'], rows, columns)
}

/** The beginning of a text, never half a sign, and whether that is all of it. */
export function beginning(text: string, chars: number): { text: string; whole: boolean } {
  if (text.length <= chars) return { text, whole: true }
  return { text: text.slice(0, chars).replace(/[\ud800-\udbff]$/, ''), whole: false }
}

/** A value as a cell shows it: words and numbers plain, lists with commas, anything else as JSON. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return value.join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** What a change of access brought about (AP-08). */
export function cancelledWords(cancelled: number): string {
  if (cancelled === 0) return 'No unfinished call had to be cancelled.'
  return `${cancelled} unfinished ${cancelled === 1 ? 'call was' : 'calls were'} cancelled.`
}

/** Narrows the widest columns until borders (one a column and one more) and cells fit; undefined where they do anyway. */
function fit(head: readonly string[], rows: readonly (readonly string[])[], columns: number): number[] | undefined {
  const widths = head.map(
    (name, index) => Math.max(...[name, ...rows.map((row) => row[index] ?? '')].map((c) => c.length)) + 2,
  )
  let excess = widths.reduce((sum, width) => sum + width + 1, 1) - columns
  if (excess <= 0) return undefined
  for (; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths))
    const width = widths[widest] ?? 0
    if (width <= MIN_COLUMN) break
    widths[widest] = width - 1
  }
  return widths
}

const MIN_COLUMN = 10

/** Control characters and those that reorder text, which clients could have put into a name to deceive the owner's eye. */
const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Text that is safe to show in a terminal: what could steer it is written as an escape. `lines` keeps line ends and tabs. */
export function printable(text: string, { lines = false } = {}): string {
  return (lines ? text.replaceAll('\r\n', '\n') : text).replaceAll(UNSAFE, (sign) => {
    if (lines && (sign === '\n' || sign === '\t')) return sign
    if (sign === '\n') return '\\n'
    if (sign === '\t') return '\\t'
    return `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
  })
}

/** JSON whose unsafe characters are escaped as JSON escapes, so that a terminal is safe too. */
function toJson(value: unknown, indent = 2): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replaceAll(UNSAFE, (sign) =>
    sign === '\n' ? sign : `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  )
}

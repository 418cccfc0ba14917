import type { LongText, OutcomeBlock } from '../lib/content.js'
import type { ErrorCode } from '../lib/errors.js'
import type { Outputs } from '../processes/output/outputs.js'
import type { TerminalStatus } from '../store/operations.js'
import type { Store } from '../store/store.js'

/** How an operation ended, as it is saved and replayed. */
export interface Outcome {
  status: TerminalStatus
  content: OutcomeBlock[]
  facts?: Record<string, unknown>
  error?: { code: ErrorCode; message: string; hint?: string; data?: Record<string, unknown> }
  /** True where work had begun and what it did is not known to be nothing. */
  effectsPossible?: boolean
}

/** A block in the operation's row; `part` says that its text or data lies in `result_parts`. */
type SavedBlock =
  | { type: 'text'; text: string }
  | { type: 'text'; part: number; length: number }
  /** What a command has written, in the home's files. */
  | { type: 'text'; output: true; length: number }
  | { type: 'image' | 'audio' | 'kept'; mimeType: string; part: number; length: number }
  | { type: 'kept'; mimeType: string; output: true; length: number }
  | { type: 'resource'; uri: string; mimeType?: string; as: 'blob' | 'text'; part: number; length: number }

interface SavedResult {
  content: SavedBlock[]
  facts?: Record<string, unknown>
  error?: Outcome['error']
}

/** Text up to this many characters stays in the operation's row. */
const INLINE_CHARS = 8192

/** The row's JSON and the parts beside it. A text part is UTF-16LE, so every string survives, lone surrogates too (OP-14). */
export function encodeOutcome(outcome: Outcome): {
  result: string
  chars: number
  parts: { part: number; body: Buffer }[]
} {
  const parts: { part: number; body: Buffer }[] = []
  let chars = 0
  const save = (part: number, body: Buffer) => {
    parts.push({ part, body })
    return { part, length: body.length }
  }
  const content = outcome.content.map((block, part): SavedBlock => {
    if (block.type === 'long_text') {
      chars += block.length
      return { type: 'text', output: true, length: block.length }
    }
    if (block.type === 'kept') {
      const { type, mimeType, length } = block
      if (block.output === true) return { type, mimeType, output: true, length }
      return { type, mimeType, ...save(part, block.read(0, length)) }
    }
    if (block.type === 'text') {
      chars += block.text.length
      if (block.text.length <= INLINE_CHARS) return block
      return { type: 'text', part, length: save(part, Buffer.from(block.text, 'utf16le')).length / 2 }
    }
    if (block.type === 'resource') {
      const { uri, mimeType } = block.resource
      const named = mimeType === undefined ? { uri } : { uri, mimeType }
      if ('blob' in block.resource) {
        return { type: 'resource', ...named, as: 'blob', ...save(part, Buffer.from(block.resource.blob, 'base64')) }
      }
      chars += block.resource.text.length
      const saved = save(part, Buffer.from(block.resource.text, 'utf16le'))
      return { type: 'resource', ...named, as: 'text', part, length: saved.length / 2 }
    }
    return { type: block.type, mimeType: block.mimeType, ...save(part, Buffer.from(block.data, 'base64')) }
  })
  const saved: SavedResult = { content }
  if (outcome.facts !== undefined) saved.facts = outcome.facts
  if (outcome.error !== undefined) saved.error = outcome.error
  return { result: JSON.stringify(saved), chars, parts }
}

/** Puts a saved result together again, exactly as it was. */
export function decodeOutcome(
  { results, outputs }: ResultSources,
  row: { id: string; status: TerminalStatus; result: string; effects_possible: number },
): Outcome {
  const saved = JSON.parse(row.result) as SavedResult
  const content = saved.content.map((block): OutcomeBlock => {
    if (block.type === 'text') {
      if ('text' in block) return block
      if ('output' in block) return longText(outputs, row.id, block.length)
      return { type: 'text', text: textPart(results, row.id, block.part, block.length) }
    }
    if (block.type === 'resource') {
      const named = block.mimeType === undefined ? { uri: block.uri } : { uri: block.uri, mimeType: block.mimeType }
      return block.as === 'text'
        ? { type: 'resource', resource: { ...named, text: textPart(results, row.id, block.part, block.length) } }
        : {
            type: 'resource',
            resource: { ...named, blob: results.read(row.id, block.part, 0, block.length).toString('base64') },
          }
    }
    if (block.type === 'kept') {
      const { type, mimeType, length } = block
      return { type, mimeType, length, read: keptBytes({ results, outputs }, row.id, block) }
    }
    const data = results.read(row.id, block.part, 0, block.length).toString('base64')
    return { type: block.type, mimeType: block.mimeType, data }
  })
  const outcome: Outcome = { status: row.status, content }
  if (saved.facts !== undefined) outcome.facts = saved.facts
  if (saved.error !== undefined) outcome.error = saved.error
  if (row.effects_possible === 1) outcome.effectsPossible = true
  return outcome
}

/** Where what does not fit an operation's row lies. */
export interface ResultSources {
  results: Store['results']
  outputs: Pick<Outputs, 'saved'>
}

/** The saved output; where it had to go for newer output, that is what it says. */
function longText(
  outputs: ResultSources['outputs'],
  id: string,
  length: number,
): LongText | { type: 'text'; text: string } {
  const saved = outputs.saved(id)
  if (saved !== undefined) return { type: 'long_text', length: saved.chars, read: saved.text }
  return { type: 'text', text: notKept(`${length} characters`) }
}

function notKept(size: string): string {
  return `[The output (${size}) is not kept any more: newer output took its place, see storage.total_output_mb.]`
}

interface OpenPart {
  kind: 'text' | 'media'
  length: number
  mimeType?: string
  text(start: number, end: number): string
  bytes(start: number, end: number): Buffer
}

/** One part of a saved result without putting the rest together: its kind, its length, and a way to read a range. */
export function openPart(
  { results, outputs }: ResultSources,
  row: { id: string; result: string },
  part: number,
): OpenPart | undefined {
  const block = (JSON.parse(row.result) as SavedResult).content[part]
  if (block === undefined) return undefined
  if ('text' in block) return plainPart(block.text)
  if (block.type === 'kept') {
    const { mimeType, length } = block
    if ('output' in block && outputs.saved(row.id) === undefined) return plainPart(notKept(`${length} bytes`))
    return { kind: 'media', length, mimeType, text: () => '', bytes: keptBytes({ results, outputs }, row.id, block) }
  }
  if ('output' in block) {
    const long = longText(outputs, row.id, block.length)
    if (long.type === 'text') return plainPart(long.text)
    return { kind: 'text', length: long.length, text: long.read, bytes: () => Buffer.alloc(0) }
  }
  const isText = block.type === 'text' || (block.type === 'resource' && block.as === 'text')
  return {
    kind: isText ? 'text' : 'media',
    length: block.length,
    ...('mimeType' in block && block.mimeType !== undefined ? { mimeType: block.mimeType } : {}),
    text: (start, end) => results.read(row.id, block.part, start * 2, end * 2).toString('utf16le'),
    bytes: (start, end) => results.read(row.id, block.part, start, end),
  }
}

function plainPart(whole: string): OpenPart {
  return {
    kind: 'text',
    length: whole.length,
    text: (start, end) => whole.slice(start, end),
    bytes: () => Buffer.alloc(0),
  }
}

/** Nothing where newer output took the place of a command's. */
function keptBytes(
  { results, outputs }: ResultSources,
  id: string,
  block: Extract<SavedBlock, { type: 'kept' | 'image' | 'audio' }>,
) {
  return (start: number, end: number): Buffer =>
    'part' in block ? results.read(id, block.part, start, end) : (outputs.saved(id)?.raw(start, end) ?? Buffer.alloc(0))
}

function textPart(results: Store['results'], id: string, part: number, length: number): string {
  return results.read(id, part, 0, length * 2).toString('utf16le')
}

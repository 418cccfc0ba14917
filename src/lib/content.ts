/** One block of a tool's answer, as in MCP. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | {
      type: 'resource'
      resource: { uri: string; mimeType?: string; blob: string } | { uri: string; mimeType?: string; text: string }
    }

/** Text that is too long to hold: it lies in files, and only parts of it are read. */
export interface LongText {
  type: 'long_text'
  /** UTF-16 code units. */
  length: number
  read(start: number, end: number): string
}

/** Kept with a result and never sent with it: the original of what was made smaller or cleaned. It is paged like any part. */
export interface KeptBytes {
  type: 'kept'
  mimeType: string
  /** Bytes. */
  length: number
  read(start: number, end: number): Buffer
  /** They are what a command has written, and lie in files already. */
  output?: true
}

/** What references to kept bytes begin with. A resource that is named by one must be kept. */
export const KEPT_SCHEME = 'kiki-file://'

/** Names a part of media of an operation's saved result, within its session (MD-01). */
export function keptReference(operationId: string, part: number): string {
  return `${KEPT_SCHEME}${operationId}/${part}`
}

/** One block of what an operation ended with. */
export type OutcomeBlock = ContentBlock | LongText | KeptBytes

/** The first characters of a block of text, and how long it is in all; undefined for anything else. */
export function beginningOf(block: OutcomeBlock, chars: number): { text: string; length: number } | undefined {
  if (block.type === 'long_text') return { text: block.read(0, chars), length: block.length }
  return block.type === 'text' ? { text: block.text.slice(0, chars), length: block.text.length } : undefined
}

/** A `tools/call` result as it goes to the client. */
export interface Reply {
  content: ContentBlock[]
  structuredContent?: Record<string, unknown>
  isError?: true
  _meta: Record<string, unknown>
}

/** A call that the reader can make as it stands. */
export interface NextCall {
  tool: string
  arguments: Record<string, unknown>
}

/** A call in the words of a text: the tool, then its arguments as JSON. */
export function describeCall(call: NextCall): string {
  return `${call.tool} ${JSON.stringify(call.arguments)}`
}

/** `end` moved back by one where a cut there would split a surrogate pair. */
export function safeCut(text: string, end: number): number {
  if (end <= 0 || end >= text.length) return Math.max(0, Math.min(end, text.length))
  const before = text.charCodeAt(end - 1)
  const after = text.charCodeAt(end)
  const splits = before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff
  return splits ? end - 1 : end
}

import { scanObject } from './scan.js'

export type Id = string | number

/** One line, as far as the relay has to understand it. */
export type Message =
  | { kind: 'request'; id: Id; method: string }
  | { kind: 'notification'; method: string; params: Record<string, unknown> }
  | { kind: 'response'; id: Id | null; failed: boolean; result: unknown }
  | { kind: 'invalid'; id: Id | null; code: -32700 | -32600; message: string }
  | { kind: 'blank' }

/** Longer lines are scanned, not parsed; their params and results then count as empty. */
const MAX_PARSED_BYTES = 64 * 1024

/** Reads one JSON-RPC 2.0 message. Never throws: what is no message is of kind `invalid`, with the answer that it deserves. */
export function readMessage(line: Buffer): Message {
  if (line.length > MAX_PARSED_BYTES) return readLong(line)
  let value: unknown
  try {
    value = JSON.parse(line.toString('utf8'))
  } catch {
    return line.toString('latin1').trim() === '' ? { kind: 'blank' } : notJson()
  }
  if (Array.isArray(value)) return batch()
  if (!isObject(value)) return invalid(null, 'A message must be a JSON object.')
  return classify(value, (name) => name in value)
}

/**
 * The id of a request of which only the two ends are known, or null.
 * At the end, `"id":…` right before the last brace (at most `"jsonrpc"` between) can only be a member of the outermost object: SDK
 * clients write it there.
 */
export function idOfCutLine(head: Buffer, tail: Buffer): Id | null {
  const first = scanObject(head, true)?.scalars.get('id')
  if (isId(first)) return first
  const last = /[{,]\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(
    tail.toString('utf8'),
  )
  if (!last?.[1]) return null
  try {
    const id: unknown = JSON.parse(last[1])
    return isId(id) ? id : null
  } catch {
    return null
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isId(value: unknown): value is Id {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value))
}

function readLong(line: Buffer): Message {
  const found = scanObject(line)
  if (!found)
    return line.toString('latin1', 0, 64).trimStart().startsWith('[') ? batch() : { ...notJson(), id: idAtEnds(line) }
  return classify(Object.fromEntries(found.scalars), (name) => found.names.has(name))
}

/** Of a long line that is no JSON, or nested beyond reading: whoever waits under its id is told, where it can be known. */
function idAtEnds(line: Buffer): Id | null {
  return idOfCutLine(line.subarray(0, MAX_PARSED_BYTES), line.subarray(-MAX_PARSED_BYTES))
}

function classify(value: Record<string, unknown>, has: (name: string) => boolean): Message {
  const { id, method } = value
  if (value.jsonrpc !== '2.0') return invalid(isId(id) ? id : null, 'The member "jsonrpc" must be "2.0".')
  if (has('method')) {
    if (typeof method !== 'string') return invalid(isId(id) ? id : null, 'The member "method" must be a string.')
    if (!has('id')) return { kind: 'notification', method, params: isObject(value.params) ? value.params : {} }
    if (!isId(id)) return invalid(null, 'The member "id" must be a string or an integer.')
    return { kind: 'request', id, method }
  }
  if (has('result') || has('error')) {
    if (!isId(id) && id !== null && has('id')) return invalid(null, 'The member "id" must be a string or an integer.')
    return { kind: 'response', id: isId(id) ? id : null, failed: has('error'), result: value.result }
  }
  return invalid(isId(id) ? id : null, 'A message needs "method", "result" or "error".')
}

function notJson(): Message & { kind: 'invalid' } {
  return {
    kind: 'invalid',
    id: null,
    code: -32700,
    message:
      'This line is not JSON, or nested deeper than 1,000 levels. Send one JSON-RPC message on each line, without Content-Length headers.',
  }
}

function batch(): Message {
  return invalid(null, 'Batches are not served here. Send each message on a line of its own.')
}

function invalid(id: Id | null, message: string): Message {
  return { kind: 'invalid', id, code: -32600, message }
}

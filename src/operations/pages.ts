import { type ContentBlock, describeCall, type NextCall, type Reply, safeCut } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import type { OperationRow } from '../store/operations.js'
import { isTerminal } from './operations.js'
import { openPart, type ResultSources } from './outcome.js'

/** Largest page: UTF-16 code units of text, or bytes of media (OP-14). */
export const MAX_PAGE = 256_000

export interface PageRequest {
  part: number
  offset: number
  limit: number
}

/**
 * One page of a saved result: text by UTF-16 code units without splitting a surrogate pair, media by bytes as base64
 * resource chunks; `next` is a ready call, absent at the end. Concatenated pages equal the original (OP-14, OP-15).
 */
export function readPage(sources: ResultSources, row: OperationRow, { part, offset, limit }: PageRequest): Reply {
  const source = row.result === null ? undefined : openPart(sources, { id: row.id, result: row.result }, part)
  if (source === undefined) throw missing(row, part)
  if (offset > source.length) {
    throw new KikiError('invalid_arguments', `offset ${offset} is past the end of part ${part} (${source.length}).`)
  }
  const wanted = Math.min(offset + limit, source.length)
  const nextAt = (end: number) => (end < source.length ? { next: nextCall(row.id, part, end, limit) } : {})
  const _meta = { 'kiki/operation': { operation_id: row.id, status: row.status, session_ref: row.session_ref } }
  if (source.kind === 'media') {
    const uri = `kiki-result://${row.id}/${part}?offset=${offset}`
    const mimeType = source.mimeType ?? 'application/octet-stream'
    const blob = source.bytes(offset, wanted).toString('base64')
    const facts = { part, offset, length: wanted - offset, total: source.length, ...nextAt(wanted) }
    // No structuredContent beside media: applications that show the model only that would hide them (spec/control.md).
    const more = wanted < source.length ? [nextLine(nextCall(row.id, part, wanted, limit))] : []
    return {
      content: [{ type: 'resource', resource: { uri, mimeType, blob } }, ...more],
      _meta: { ..._meta, 'kiki/result': facts },
    }
  }
  const read = source.text(offset, Math.min(wanted + 1, source.length))
  const cut = safeCut(read, wanted - offset)
  const text = read.slice(0, cut === 0 && wanted > offset ? Math.min(2, read.length) : cut)
  const end = offset + text.length
  return {
    content: [{ type: 'text', text }],
    structuredContent: { text, offset, ...nextAt(end) },
    _meta: { ..._meta, 'kiki/result': { part, offset, length: text.length, total: source.length, ...nextAt(end) } },
  }
}

function nextCall(id: string, part: number, offset: number, limit: number): NextCall {
  return { tool: 'kiki_operation', arguments: { action: 'read', operation_id: id, part, offset, limit } }
}

function nextLine(call: NextCall): ContentBlock {
  return { type: 'text', text: `The next page: ${describeCall(call)}` }
}

function missing(row: OperationRow, part: number): KikiError {
  if (!isTerminal(row.status)) {
    return new KikiError('result_missing', `The operation is ${row.status}; it has no result yet.`, {
      hint: `Call kiki_operation with {"action":"wait","operation_id":"${row.id}"} first.`,
    })
  }
  if (row.result !== null)
    return new KikiError('result_missing', `The saved result has no part ${part}.`, {
      hint: 'Parts are counted from 0.',
    })
  return new KikiError('result_missing', 'No result was saved: a plain read keeps its result only when it was cut.', {
    hint: 'Call the tool again.',
  })
}

import { setImmediate } from 'node:timers/promises'
import { isObject } from '../lib/json.js'
import type { AuditFilter, AuditRow, AuditTable } from '../store/audit.js'
import { GENESIS, type Head, lineOf, timeOf } from './chain.js'

/** Entries that are looked at, or exported, between two turns of the event loop. */
const LOOKED_AT = 20_000
const EXPORTED = 500

export interface Page {
  filter: AuditFilter
  /** Only entries before this one. */
  before?: number | undefined
  limit: number
}

/** Entries that fit, newest first; at most one more than the limit, which tells that there are more. */
export async function listEntries(table: AuditTable, { filter, before, limit }: Page): Promise<AuditRow[]> {
  const found: AuditRow[] = []
  const end = (table.last()?.seq ?? 0) + 1
  for (let to = Math.min(before ?? end, end); to > 1 && found.length <= limit; to -= LOOKED_AT) {
    found.push(...table.between(to - LOOKED_AT, to, filter, limit + 1 - found.length))
    await setImmediate()
  }
  return found
}

/**
 * The whole log as it is now, as JSON Lines in pieces: each entry in the form that its MAC is of, with `mac` added, and at
 * the end the head.
 */
export async function* exportLines(table: AuditTable): AsyncGenerator<string> {
  const end = table.last()?.seq ?? 0
  let head: Head = { seq: 0, mac: GENESIS }
  while (head.seq < end) {
    const lines: string[] = []
    for (const row of table.after(head.seq, end, EXPORTED)) {
      const mac = row.mac.toString('hex')
      lines.push(`${lineOf(row, head.mac).slice(0, -1)},"mac":"${mac}"}\n`)
      head = { seq: row.seq, mac }
    }
    yield lines.join('')
    await setImmediate()
  }
  yield `${JSON.stringify({ head })}\n`
}

/** An entry as the owner sees it. */
export function entryView(row: AuditRow) {
  return {
    seq: row.seq,
    at: timeOf(row.at),
    actor: row.actor,
    action: row.action,
    connection: row.connection_id,
    session: row.session_ref,
    operation: row.operation_id,
    tool: row.tool,
    argument_hash: row.argument_hash,
    decision: row.decision,
    rule: row.rule,
    status: row.status,
    error_code: row.error_code,
    duration_ms: row.duration_ms,
    detail: detailOf(row.detail),
    mac: row.mac.toString('hex'),
  }
}

/** One that was tampered with may be no JSON: it is for `verify` to say so. */
function detailOf(text: string | null): Record<string, unknown> | null {
  if (text === null) return null
  try {
    const detail: unknown = JSON.parse(text)
    return isObject(detail) ? detail : { unreadable: text }
  } catch {
    return { unreadable: text }
  }
}

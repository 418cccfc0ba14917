import { createHmac } from 'node:crypto'
import type { AuditRow, AuditTable } from '../store/audit.js'

/** What an entry tells. Ids, names of Kiki's own and numbers only: never arguments, never a secret (FC-W01). */
export interface Entry {
  /** A connection's id, `owner`, `host`, or `unknown` for who could not show who they are. */
  actor: string
  action: string
  connection?: string | null
  session?: string | null
  operation?: string | null
  tool?: string | null
  argumentHash?: string | null
  decision?: string | null
  rule?: string | null
  status?: string | null
  errorCode?: string | null
  durationMs?: number | null
  detail?: Detail
}

/** Facts beside the rest of an entry. */
export type Detail = Readonly<Record<string, string | number | boolean>>

/** Where a chain ends: its last entry, or `seq` 0 and {@link GENESIS} before the first. */
export interface Head {
  seq: number
  /** Hex. */
  mac: string
}

/** Stands in the place of the MAC before the first entry. */
export const GENESIS = '0'.repeat(64)
/** Characters of one text; what Kiki itself writes is far shorter. */
const MAX_CHARS = 256
/** Greatest time that a date can hold, in milliseconds (ECMA-262, §21.4.1.1). */
const MAX_TIME = 8.64e15

/** Adds an entry at the end of the chain, within the caller's transaction. Fails only where the database does. */
export function appendEntry(table: AuditTable, key: Uint8Array, entry: Entry, at: number): Head {
  const last = table.last()
  const row = { ...rowOf(entry), seq: (last?.seq ?? 0) + 1, at: whole(at) }
  const mac = macOf(key, lineOf(row, last?.mac.toString('hex') ?? GENESIS))
  table.insert({ ...row, mac })
  return { seq: row.seq, mac: mac.toString('hex') }
}

/**
 * The RFC 8785 form of an entry with the MAC before it as `prev`: what its own MAC is of, and what is exported. Names stand
 * in the order of RFC 8785; `detail` is taken as it is stored, so that any change of it shows.
 */
export function lineOf(row: Omit<AuditRow, 'mac'>, prev: string): string {
  const text = JSON.stringify
  return (
    `{"action":${text(row.action)},"actor":${text(row.actor)},"argument_hash":${text(row.argument_hash)}` +
    `,"at":${text(timeOf(row.at))},"connection":${text(row.connection_id)},"decision":${text(row.decision)}` +
    `,"detail":${row.detail ?? 'null'},"duration_ms":${text(row.duration_ms)},"error_code":${text(row.error_code)}` +
    `,"operation":${text(row.operation_id)},"prev":"${prev}","rule":${text(row.rule)},"seq":${row.seq}` +
    `,"session":${text(row.session_ref)},"status":${text(row.status)},"tool":${text(row.tool)}}`
  )
}

/** HMAC-SHA-256. */
export function macOf(key: Uint8Array, line: string): Buffer {
  return createHmac('sha256', key).update(line).digest()
}

/** RFC 3339; a time that no date can hold, which Kiki never writes, as its number. */
export function timeOf(ms: number): string {
  return Math.abs(ms) <= MAX_TIME ? new Date(ms).toISOString() : String(ms)
}

function rowOf(entry: Entry): Omit<AuditRow, 'seq' | 'at' | 'mac'> {
  return {
    actor: clean(entry.actor),
    action: clean(entry.action),
    connection_id: clean(entry.connection),
    session_ref: clean(entry.session),
    operation_id: clean(entry.operation),
    tool: clean(entry.tool),
    argument_hash: clean(entry.argumentHash),
    decision: clean(entry.decision),
    rule: clean(entry.rule),
    status: clean(entry.status),
    error_code: clean(entry.errorCode),
    duration_ms: typeof entry.durationMs === 'number' ? Math.max(0, whole(entry.durationMs)) : null,
    detail: entry.detail === undefined ? null : detailOf(entry.detail),
  }
}

function detailOf(detail: Detail): string {
  const parts = Object.entries(detail)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, typeof value === 'string' ? clean(value) : value])
  return JSON.stringify(Object.fromEntries(parts))
}

/** SQLite stores no half of a surrogate pair: what is read back must be what the MAC was made of. */
function clean(text: string): string
function clean(text: string | null | undefined): string | null
function clean(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : text.slice(0, MAX_CHARS).replace(/\p{Surrogate}/gu, '\ufffd')
}

function whole(value: number): number {
  const rounded = Math.round(value)
  return Number.isSafeInteger(rounded) && Math.abs(rounded) <= MAX_TIME ? rounded : 0
}

import { setImmediate } from 'node:timers/promises'
import type { AuditTable } from '../store/audit.js'
import { GENESIS, type Head, lineOf, macOf } from './chain.js'

/** What stands where Kiki found at a start that the log did not reach its kept head. */
export const HEAD_MISMATCH = 'audit.head_mismatch'

export interface Verification {
  ok: boolean
  /** Entries that fit, from the first on. */
  entries: number
  head: Head
  /** The first entry that does not fit. */
  problem: AuditProblem | null
  /** Numbers of the entries by which the host itself noted a fault at a start. */
  alarms: number[]
}

export interface AuditProblem {
  seq: number
  kind: 'missing' | 'altered' | 'rewritten' | 'truncated' | 'no_head'
  message: string
}

export interface VerifyOptions {
  table: AuditTable
  key: Uint8Array
  /** The head that is kept beside the key. */
  kept: Head | undefined
  /** A head that was exported earlier. */
  exported?: Head | undefined
}

/** Entries that are read and checked between two turns of the event loop. */
const SLICE = 500

/** Reads the whole log through, in bounded memory. */
export async function verifyChain(options: VerifyOptions): Promise<Verification> {
  const { table, key } = options
  const heads = [options.kept, options.exported].filter((head) => head !== undefined)
  const end = table.last()?.seq ?? 0
  const alarms: number[] = []
  let head: Head = { seq: 0, mac: GENESIS }
  let problem = noHead(options.kept, end) ?? differs(heads, head)
  while (problem === null && head.seq < end) {
    const rows = table.after(head.seq, end, SLICE)
    for (const row of rows) {
      if (row.seq !== head.seq + 1) {
        problem = { seq: head.seq + 1, kind: 'missing', message: `Entries ${head.seq + 1} to ${row.seq - 1} are gone.` }
        break
      }
      const mac = macOf(key, lineOf(row, head.mac))
      if (!mac.equals(row.mac)) {
        problem = {
          seq: row.seq,
          kind: 'altered',
          message: `Entry ${row.seq}, or the one before it, is not as Kiki wrote it.`,
        }
        break
      }
      head = { seq: row.seq, mac: mac.toString('hex') }
      if (row.action === HEAD_MISMATCH) alarms.push(row.seq)
      problem = differs(heads, head)
      if (problem !== null) break
    }
    await setImmediate()
  }
  problem ??= cutOff(heads, head)
  return { ok: problem === null && alarms.length === 0, entries: head.seq, head, problem, alarms }
}

/** Whether the log still holds the entry of a head: the host's own check at a start. */
export function reaches(table: AuditTable, kept: Head | undefined): boolean {
  if (kept === undefined) return false
  return kept.seq === 0 ? kept.mac === GENESIS : table.macOf(kept.seq)?.toString('hex') === kept.mac
}

function noHead(kept: Head | undefined, end: number): AuditProblem | null {
  if (kept !== undefined) return null
  const message = 'The head that Kiki keeps beside its key is missing, so whether the log was cut off is not known.'
  return { seq: end, kind: 'no_head', message }
}

function differs(heads: readonly Head[], at: Head): AuditProblem | null {
  if (heads.every(({ seq, mac }) => seq !== at.seq || mac === at.mac)) return null
  return { seq: at.seq, kind: 'rewritten', message: `Entry ${at.seq} is another than the one that was there before.` }
}

function cutOff(heads: readonly Head[], end: Head): AuditProblem | null {
  const furthest = Math.max(...heads.map(({ seq }) => seq))
  if (furthest <= end.seq) return null
  const message = `The log ends at entry ${end.seq}, but entry ${furthest} had been written: its end was cut off.`
  return { seq: end.seq + 1, kind: 'truncated', message }
}

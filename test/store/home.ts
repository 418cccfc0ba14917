import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../src/lib/clock.js'
import { openStore, type Store } from '../../src/store/store.js'

/** A fresh folder with the places of a home's database. */
export function storeHome() {
  const dir = mkdtempSync(join(tmpdir(), 'kiki-store-'))
  mkdirSync(join(dir, 'keys'))
  const files = { database: join(dir, 'kiki.db'), marker: join(dir, 'keys', 'database') }
  return {
    dir,
    files,
    open: (): Store =>
      openStore(files, (error) => {
        throw error
      }),
    /** SHA-256 of the database and its log; `none` for one that is not there or empty, which means the same. */
    hashes: () => ({ database: hashOf(files.database), log: hashOf(`${files.database}-wal`) }),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

export function hashOf(path: string): string {
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
  return bytes.length === 0 ? 'none' : createHash('sha256').update(bytes).digest('hex')
}

/** A clock that only the test moves. */
export function handClock(now = Date.parse('2026-01-01')): Clock & { advance(ms: number): void } {
  let at = now
  return {
    now: () => at,
    monotonic: () => at,
    advance: (ms) => {
      at += ms
    },
  }
}

/** A finished operation's row. */
export function operation(id: string, fields: Partial<Parameters<Store['operations']['insert']>[0]> = {}) {
  return {
    id,
    connection_id: 'client_1',
    session_ref: 'ref',
    idempotency_key: null,
    parent_id: null,
    client: null,
    tool: 'Write',
    effect: 'write',
    arguments: '{}',
    fingerprint: 'f',
    policy_version: 1,
    decision: '{}',
    approval_id: null,
    status: 'running' as const,
    accepted_at: 1,
    started_at: 1,
    ended_at: null,
    boot_id: null,
    attempt: 1,
    error_code: null,
    effects_possible: 0,
    result: null,
    result_chars: 0,
    ...fields,
  }
}

export const ENDING = { ended_at: 2, error_code: null, effects_possible: 0, result: '{}', result_chars: 2 }

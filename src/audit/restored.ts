import { join } from 'node:path'
import type { Clock } from '../lib/clock.js'
import { auditTable } from '../store/audit.js'
import type { Database } from '../store/database.js'
import { appendEntry, type Detail } from './chain.js'
import { openAuditFiles, readHead } from './head-file.js'

/**
 * Notes in a database that a backup brought back that it was brought back, and when what it goes on from ended; its head is
 * kept anew. The log of the home that it replaces goes on nowhere: its last head is in the entry, its database is kept aside.
 * @param staged the restored home, still aside.
 * @param replaced keys folder of the home as it is.
 */
export function recordRestore(
  db: Database,
  { staged, replaced, madeAt, clock }: { staged: string; replaced: string; madeAt: string; clock: Clock },
): void {
  const { key, head } = openAuditFiles(join(staged, 'keys'))
  const before = readHead(replaced)
  const was: Detail = before === undefined ? {} : { replaced_seq: before.seq, replaced_mac: before.mac }
  const entry = { actor: 'owner', action: 'restore', detail: { backup_made_at: madeAt, ...was } }
  try {
    head.write(db.transaction(() => appendEntry(auditTable(db), key, entry, clock.now())).immediate())
  } finally {
    head.close()
  }
}

import { unlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { descend } from './descend.js'
import { fileError } from './errors.js'
import { type ChangeContext, identityOf, MAX_CHANGE_BYTES } from './files.js'
import { type ChangeRecord, sha256 } from './journal.js'
import { walk } from './walk.js'
import type { Workspace } from './workspace.js'
import { overwrite, readWhole } from './write.js'

/** What stood in a file that was being written in place when the host died. */
export type InPlaceOutcome = 'restored' | 'unchanged' | 'complete' | 'gone'

/**
 * After a crash, for a record with `inPlace`: puts the earlier content back unless the file holds the old (`unchanged`)
 * or the new (`complete`) content whole (FI-06). What it held is recorded first, so nothing is lost if a person changed
 * it since. `gone`: the file of then is not there any more; nothing is done.
 * @param context with a journal of an operation of its own.
 * @param before the record's content, from `journalContent`.
 */
export function restoreInPlace(
  context: Pick<ChangeContext, 'workspace' | 'journal'>,
  record: ChangeRecord,
  before: Buffer,
): InPlaceOutcome {
  const place = walk(context.workspace, record.path, { follow: false })
  try {
    const { node } = place
    if (node === undefined || !node.stat.isFile() || identityOf(node.stat) !== record.identity) return 'gone'
    const now = readWhole(place, node, 2 * MAX_CHANGE_BYTES)
    const hash = sha256(now)
    if (hash === record.beforeSha256) return 'unchanged'
    if (hash === record.afterSha256) return 'complete'
    context.journal.record(
      {
        kind: 'modify',
        path: place.path,
        mode: Number(node.stat.mode & 0o7777n),
        beforeSha256: hash,
        afterSha256: sha256(before),
        inPlace: true,
        identity: identityOf(node.stat),
      },
      now,
    )
    overwrite(place, before, node)
    return 'restored'
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

/** After a crash: removes the temporary file that a record names, if the crash left it. */
export function removeTemporary(workspace: Workspace, record: ChangeRecord): boolean {
  if (record.temporary === undefined || !/^\.kiki-[0-9a-f]{18}\.tmp$/.test(record.temporary)) return false
  const place = walk(workspace, join(dirname(record.path), record.temporary), { follow: false })
  try {
    if (place.node === undefined || place.missing.length > 0 || !place.node.stat.isFile()) return false
    unlinkSync(descend.at(place.folder, place.name))
    return true
  } catch (error) {
    throw fileError(error, place.display)
  } finally {
    place.close()
  }
}

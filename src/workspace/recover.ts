import { closeSync, unlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { descend, type Held, type Node } from './descend.js'
import { fileError } from './errors.js'
import { identityOf, MAX_CHANGE_BYTES } from './files.js'
import { type ChangeRecord, createJournal, journalContent, readJournal, sha256 } from './journal.js'
import { overwrite, readWhole } from './write.js'

/** What stood in a file that was being written in place when the host died. */
export type InPlaceOutcome = 'restored' | 'unchanged' | 'complete' | 'gone'

/**
 * After a crash, for a record with `inPlace`: puts the earlier content back unless the file holds the old (`unchanged`)
 * or the new (`complete`) content whole (FI-06). What it held is added to the operation's journal first, so nothing is
 * lost if a person changed it since. `gone`: the file of then is not there any more; nothing is done. The file is known
 * by its inode, which the safe walk had vetted.
 * @param dir the journal's folder.
 * @throws KikiError where the content cannot be read or kept, or the file is being changed right now.
 */
export function restoreInPlace(dir: string, operationId: string, record: ChangeRecord): InPlaceOutcome {
  const before = journalContent(dir, operationId, record.seq)
  if (record.inPlace !== true || before === undefined) return 'gone'
  const outcome = atRecorded(record, basename(record.path), (folder, name, node): InPlaceOutcome => {
    if (identityOf(node.stat) !== record.identity) return 'gone'
    const target = { folder, name, display: record.path }
    const now = readWhole(target, node, 2 * MAX_CHANGE_BYTES)
    const hash = sha256(now)
    if (hash === record.beforeSha256) return 'unchanged'
    if (hash === record.afterSha256) return 'complete'
    const journal = createJournal({ dir, operationId, firstSeq: readJournal(dir, operationId).length })
    const { kind, path, mode, identity } = record
    journal.record(
      {
        kind,
        path,
        beforeSha256: hash,
        afterSha256: sha256(before),
        inPlace: true,
        ...(mode === undefined ? {} : { mode }),
        ...(identity === undefined ? {} : { identity }),
      },
      now,
    )
    overwrite(target, before, node)
    return 'restored'
  })
  return outcome ?? 'gone'
}

/** After a crash: removes the temporary file that a record names, if the crash left it. True where one was there. */
export function removeTemporary(record: ChangeRecord): boolean {
  const { temporary } = record
  if (temporary === undefined || !/^\.kiki-[0-9a-f]{18}\.tmp$/.test(temporary)) return false
  const removed = atRecorded(record, temporary, (folder, name) => {
    unlinkSync(descend.at(folder, name))
    return true
  })
  return removed ?? false
}

/** Acts on a regular file in the folder of a record; undefined where either is not there as it was. */
function atRecorded<T>(
  record: ChangeRecord,
  name: string,
  act: (folder: Held, name: string, node: Node) => T,
): T | undefined {
  let folder: Held | undefined
  let node: Node | undefined
  try {
    folder = descend.openRoot(dirname(record.path))
    node = folder && descend.openNode(folder, name)
    return folder === undefined || node?.stat.isFile() !== true ? undefined : act(folder, name, node)
  } catch (error) {
    throw fileError(error, record.path)
  } finally {
    if (node?.fd !== undefined) closeSync(node.fd)
    if (folder !== undefined) closeSync(folder.fd)
  }
}

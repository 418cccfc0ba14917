import { type ApprovalTable, approvalTable } from './approvals.js'
import { attachmentTable } from './attachments.js'
import { auditTable } from './audit.js'
import { createBallast } from './ballast.js'
import { bootTable } from './boots.js'
import { changeTable } from './changes.js'
import { childTable } from './children.js'
import { type Commits, createCommits, type OnCommit } from './commits.js'
import { connectionTable } from './connections.js'
import { type Database, type DatabaseFiles, openDatabase } from './database.js'
import { keyTable } from './keys.js'
import { readMigrations } from './migrate.js'
import { operationNoteTable } from './operation-notes.js'
import { operationTable } from './operations.js'
import { ownerRuleTable } from './owner-rules.js'
import { processTable } from './processes.js'
import { resultTable } from './results.js'
import { savedTextTable } from './saved-texts.js'
import { sessionTable } from './sessions.js'
import { type WorktreeTable, worktreeTable } from './worktrees.js'

export interface Store {
  db: Database
  commits: Commits
  connections: ReturnType<typeof connectionTable>
  sessions: ReturnType<typeof sessionTable>
  attachments: ReturnType<typeof attachmentTable>
  operations: ReturnType<typeof operationTable>
  approvals: ApprovalTable
  ownerRules: ReturnType<typeof ownerRuleTable>
  notes: ReturnType<typeof operationNoteTable>
  results: ReturnType<typeof resultTable>
  changes: ReturnType<typeof changeTable>
  keys: ReturnType<typeof keyTable>
  savedTexts: ReturnType<typeof savedTextTable>
  boots: ReturnType<typeof bootTable>
  audit: ReturnType<typeof auditTable>
  children: ReturnType<typeof childTable>
  processes: ReturnType<typeof processTable>
  worktrees: WorktreeTable
  close(): void
}

/** Opens the database and everything that reads and writes it. All SQL of Kiki is in this folder. @throws as `openDatabase`. */
export function openStore(files: DatabaseFiles, onLazyError: (error: unknown) => void, onCommit?: OnCommit): Store {
  const db = openDatabase(files, readMigrations())
  const ballast = files.ballast === undefined ? undefined : createBallast(files.ballast)
  ballast?.restore()
  const commits = createCommits(db, onLazyError, { onCommit, ballast })
  return {
    db,
    commits,
    connections: connectionTable(db),
    sessions: sessionTable(db),
    attachments: attachmentTable(db),
    operations: operationTable(db),
    approvals: approvalTable(db),
    ownerRules: ownerRuleTable(db),
    notes: operationNoteTable(db),
    results: resultTable(db),
    changes: changeTable(db),
    keys: keyTable(db),
    worktrees: worktreeTable(db),
    savedTexts: savedTextTable(db),
    boots: bootTable(db),
    audit: auditTable(db),
    children: childTable(db),
    processes: processTable(db),
    close() {
      try {
        commits.flush()
      } finally {
        db.close()
      }
    },
  }
}

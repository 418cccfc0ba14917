import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { createAudit } from '../../src/audit/audit.js'
import { openAuditFiles } from '../../src/audit/head-file.js'
import { handClock, storeHome } from '../store/home.js'

/** A real audit log on a fresh database, which can be closed, tampered with, and opened again. */
export function chained() {
  const home = storeHome()
  const keys = join(home.dir, 'keys')
  const clock = handClock()
  const said: { fields: object; message: string }[] = []

  function open() {
    const store = home.open()
    const files = openAuditFiles(keys)
    const log = { error: (fields: object, message: string) => void said.push({ fields, message }) }
    const audit = createAudit({ store, ...files, clock, log })
    return {
      store,
      audit,
      files,
      /** Commits entries of an owner's, one commit each. */
      async add(count: number) {
        for (let n = 0; n < count; n++) {
          await store.commits.durable(() => audit.append({ actor: 'owner', action: 'session.changed', detail: { n } }))
        }
      },
      close() {
        audit.close()
        store.close()
      },
    }
  }

  return {
    home,
    keys,
    clock,
    said,
    open,
    /** What somebody does who can write to the file, as an editor of databases would. */
    tamper(...statements: string[]) {
      const db = new BetterSqlite3(home.files.database)
      db.exec('DROP TRIGGER audit_unchanged; DROP TRIGGER audit_kept')
      for (const statement of statements) db.exec(statement)
      db.exec(`CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'no'); END;
        CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'no'); END;`)
      db.close()
    },
    remove: () => home.remove(),
  }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Another process that holds the write lock of a database until it is told to let go. */
export async function startLocker(database: string): Promise<{ release(): Promise<void> }> {
  const script = `
    const db = new (require('better-sqlite3'))(${JSON.stringify(database)})
    db.exec('BEGIN IMMEDIATE')
    process.stdout.write('held')
    process.stdin.on('end', () => { db.exec('ROLLBACK'); db.close() }).resume()`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return {
    async release() {
      const gone = once(child, 'exit')
      child.stdin.end()
      await gone
    },
  }
}

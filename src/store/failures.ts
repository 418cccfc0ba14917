import { KikiError, messageOf, systemCode } from '../lib/errors.js'

/** The database cannot be used as it is. Its bytes are untouched; the message says what the owner can do (GU-43). */
export class DatabaseError extends Error {
  /** @param marker the home's note that it has a database; an empty one is begun only once that is gone too. */
  constructor(file: string, marker: string, problem: string) {
    super(
      `The database ${file} ${problem}. Kiki did not start and left the file as it is. ` +
        `To recover: put back a copy made by \`kiki backup\` with \`kiki restore FILE\`. ` +
        `To begin with an empty one instead: move ${file}, ${file}-wal, ${file}-shm and ${marker}, ` +
        'as far as they are there, out of the home.',
    )
    this.name = 'DatabaseError'
  }
}

/**
 * What SQLite's failures mean to a caller, where they are no bugs: another program holds the database (GU-41), or the disk is
 * full (GU-42). Nothing of the transaction was kept. Any other error is given back as it is.
 */
export function storeFailure(error: unknown): unknown {
  const code = systemCode(error) ?? ''
  if (code.startsWith('SQLITE_BUSY')) {
    return new KikiError('timeout', "Another program holds Kiki's database, so nothing was recorded.", {
      hint: 'Try again in a moment, with the same idempotency key if there was one.',
      data: { retryable: true },
      cause: error,
    })
  }
  if (code === 'SQLITE_FULL' || code.startsWith('SQLITE_IOERR')) {
    return new KikiError(
      'internal_error',
      `Kiki's database cannot be written (${messageOf(error)}), so nothing was recorded.`,
      {
        hint: "Ask the owner to free space on the disk of Kiki's home, then try again.",
        data: { retryable: true },
        cause: error,
      },
    )
  }
  return error
}

import { randomUUID } from 'node:crypto'

export type IdPrefix = 'client' | 'ext' | 'op' | 'txt' | 'boot' | 'bridge' | 'home' | 'chg' | 'apr' | 'proc'

/**
 * A new id: the prefix, then 10 base-36 digits of milliseconds since 1970, then 16 random base-64url characters (96 bits).
 * Ids of one kind sort by the time they were made.
 */
export function newId(prefix: IdPrefix, now: number = Date.now()): string {
  return `${prefix}_${now.toString(36).padStart(10, '0')}${random96()}`
}

/** The parts of a version 4 UUID that are all random (RFC 9562 §5.4): Node keeps random bytes for it, a call of its own costs ten times more. */
function random96(): string {
  const uuid = randomUUID()
  return Buffer.from(uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(24), 'hex').toString('base64url')
}

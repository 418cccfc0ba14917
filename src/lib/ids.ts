import { randomBytes } from 'node:crypto'

export type IdPrefix = 'client' | 'ext' | 'op' | 'txt' | 'boot' | 'bridge' | 'home' | 'chg'

/**
 * A new id: the prefix, then 10 base-36 digits of milliseconds since 1970, then 16 random base-64url characters (96 bits).
 * Ids of one kind sort by the time they were made.
 */
export function newId(prefix: IdPrefix, now: number = Date.now()): string {
  return `${prefix}_${now.toString(36).padStart(10, '0')}${randomBytes(12).toString('base64url')}`
}

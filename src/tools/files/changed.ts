import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { sha256 } from '../../lib/json.js'

/** The argument of every tool that replaces a file's content. */
export const expectedSha256 = z
  .string()
  .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal digits, as Read and Edit give them')
  .optional()
  .describe('Refuse if the file is another.')

/** Raw bytes are compared, so that no decoding can make a difference where none is. */
export function checkSha256(current: Buffer | undefined, expected: string | undefined, display: string): void {
  if (expected === undefined) return
  const actual = current === undefined ? undefined : sha256(current)
  if (actual === expected.toLowerCase()) return
  const is = actual === undefined ? 'it does not exist' : `its SHA-256 is now ${actual}`
  throw new KikiError('conflict', `${display} is not the file that you expect: ${is}. Nothing was changed.`, {
    hint: 'Read the file again and repeat the edit on what is there now.',
    ...(actual === undefined ? {} : { data: { sha256: actual } }),
  })
}

import { createHash } from 'node:crypto'
import rfc8785 from 'canonicalize'
import { KikiError } from './errors.js'

/** The package's types describe its module, not the function that it exports. */
const canonicalize = rfc8785 as unknown as (value: unknown) => string | undefined

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

/** Greatest nesting that Kiki reads (GU-63). */
export const MAX_JSON_DEPTH = 64

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * RFC 8785 canonical form. Numbers are compared as IEEE doubles, so integers beyond 2^53 are refused rather than rounded (GU-10).
 * @throws KikiError `invalid_arguments` for such integers, for values that are not JSON or no finite number, and below {@link MAX_JSON_DEPTH} levels.
 */
export function canonicalJson(value: unknown): string {
  checkJson(value, 0)
  const text = canonicalize(value)
  if (text === undefined) throw notJson(value)
  return text
}

/** SHA-256 in hex of UTF-8 text or bytes. */
export function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

function checkJson(value: unknown, depth: number): void {
  if (depth > MAX_JSON_DEPTH) {
    throw new KikiError('invalid_arguments', `Arguments are nested deeper than ${MAX_JSON_DEPTH} levels.`, {
      hint: 'Send deep structures as a string.',
    })
  }
  if (['bigint', 'function', 'symbol'].includes(typeof value)) throw notJson(value)
  // `1e400` is JSON, but no double.
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new KikiError('invalid_arguments', 'A number is beyond the range of IEEE doubles.', {
      hint: 'Send it as a string.',
    })
  }
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new KikiError(
      'invalid_arguments',
      `The integer ${value} is beyond 2^53 and cannot be told from its neighbours.`,
      {
        hint: 'Send it as a string.',
      },
    )
  }
  if (Array.isArray(value)) for (const item of value) checkJson(item, depth + 1)
  else if (isObject(value)) for (const item of Object.values(value)) checkJson(item, depth + 1)
}

function notJson(value: unknown): KikiError {
  return new KikiError('invalid_arguments', `A value of type ${typeof value} is not JSON.`, {
    hint: 'Send only what JSON can hold.',
  })
}

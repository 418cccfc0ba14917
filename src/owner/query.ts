import type { z } from 'zod'
import { KikiError } from '../lib/errors.js'

/** Parses a query string's parameters. @throws KikiError `invalid_arguments`. */
export function query<Output>(schema: z.ZodType<Output>, given: Record<string, string>): Output {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'query'}: ${issue.message}`)
  throw new KikiError('invalid_arguments', `The query is not valid: ${problems.join('; ')}.`)
}

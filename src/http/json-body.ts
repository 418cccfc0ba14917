import type { Env, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { KikiError } from '../lib/errors.js'
import { isObject, MAX_JSON_DEPTH } from '../lib/json.js'

/**
 * Parses the body with `schema`; the route reads it by `c.req.valid('json')`, and `hc` knows its type.
 * @throws KikiError `invalid_arguments` for text that is not JSON, for JSON deeper than 64 levels (GU-63), and for what
 * the schema refuses, whose issues are in `data.issues`.
 */
export function jsonBody<S extends z.ZodType>(
  schema: S,
): MiddlewareHandler<Env, string, { in: { json: z.input<S> }; out: { json: z.output<S> } }> {
  return async (c, next) => {
    const parsed = schema.safeParse(parse(await c.req.arrayBuffer()))
    if (!parsed.success) {
      throw new KikiError('invalid_arguments', z.prettifyError(parsed.error), {
        hint: 'Mend the named fields.',
        data: { issues: parsed.error.issues.map((issue) => ({ path: issue.path.join('.'), message: issue.message })) },
      })
    }
    c.req.addValidatedData('json', parsed.data as object)
    await next()
  }
}

function parse(bytes: ArrayBuffer): unknown {
  let value: unknown
  try {
    // Strict UTF-8: a wrong byte must not silently become another path or name.
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new KikiError('invalid_arguments', 'The request body is not JSON in UTF-8.', {
      hint: 'Send one JSON object; {} where there is nothing to say.',
      cause,
    })
  }
  if (isDeeper(value, MAX_JSON_DEPTH)) {
    throw new KikiError('invalid_arguments', `The request body is nested deeper than ${MAX_JSON_DEPTH} levels.`, {
      hint: 'Send a flatter object.',
    })
  }
  return value
}

function isDeeper(value: unknown, levels: number): boolean {
  if (Array.isArray(value)) return levels === 0 || value.some((item) => isDeeper(item, levels - 1))
  if (isObject(value)) return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1))
  return false
}

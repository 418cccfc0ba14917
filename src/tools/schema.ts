import { z } from 'zod'
import type { JsonObject } from '../lib/json.js'
import type { Effect } from '../policy/modes.js'
import type { Tool } from './tool.js'

/** A tool as `tools/list` shows it. */
export interface ToolDefinition {
  name: string
  title: string
  description: string
  inputSchema: JsonObject & { type: 'object' }
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}

/** All four annotations, from the effect alone. A keyed side effect repeated with its key has no further effect. */
export function annotationsOf(effect: Effect): ToolDefinition['annotations'] {
  return {
    readOnlyHint: effect === 'read',
    destructiveHint: effect === 'write' || effect === 'execute',
    idempotentHint: true,
    openWorldHint: effect === 'network' || effect === 'execute',
  }
}

/** A zod object as JSON Schema 2020-12, without the dialect line that every schema would repeat. */
export function jsonSchema(input: z.ZodType): JsonObject & { type: 'object' } {
  const schema = z.toJSONSchema(input, { target: 'draft-2020-12', io: 'input' }) as JsonObject
  delete schema.$schema
  return prune(schema) as JsonObject & { type: 'object' }
}

/** The definition of a native tool, with Kiki's own argument object (spec/control.md, "Shapes"). */
export function definitionOf(tool: Omit<Tool, 'run'>, keyRequired: boolean): ToolDefinition {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: withKiki(jsonSchema(tool.input), keyRequired && tool.effect !== 'read'),
    annotations: annotationsOf(tool.effect),
  }
}

/** A tool's schema with Kiki's own argument object, required where the tool needs a key. */
export function withKiki(schema: JsonObject & { type: 'object' }, needsKey: boolean): JsonObject & { type: 'object' } {
  const properties = { ...(schema.properties as JsonObject), _kiki: kikiSchema(needsKey) }
  const required = [...((schema.required as string[] | undefined) ?? []), ...(needsKey ? ['_kiki'] : [])]
  return { ...schema, properties, ...(required.length > 0 ? { required } : {}) }
}

/** What Kiki reads from `_kiki` (described to models once, in the server's instructions). */
export const kikiArguments = z.strictObject({
  session_ref: z.string().max(256).optional(),
  idempotency_key: z.string().min(1).max(256).optional(),
  wait_ms: z.int().min(0).optional(),
})

export type KikiArguments = z.output<typeof kikiArguments>

function kikiSchema(needsKey: boolean): JsonObject {
  return {
    type: 'object',
    ...(needsKey ? { description: 'Session; new key per new call' } : {}),
    properties: {
      session_ref: { type: 'string' },
      idempotency_key: { type: 'string' },
      wait_ms: { type: 'integer' },
    },
    ...(needsKey ? { required: ['idempotency_key'] } : {}),
  }
}

/**
 * Drops the bounds and defaults that anyone would expect: every definition is paid for in tokens (TQ-01). Kiki checks
 * them all the same, and its refusal names them.
 */
function prune(value: JsonObject[string]): JsonObject[string] {
  if (Array.isArray(value)) return value.map(prune)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key, bound]) => !isObvious(key, bound))
  return Object.fromEntries(kept.map(([key, inner]) => [key, prune(inner)]))
}

function isObvious(key: string, bound: JsonObject[string] | undefined): boolean {
  switch (key) {
    case 'default':
      return bound === false || bound === 0
    case 'minimum':
      return typeof bound === 'number' && bound <= 1
    case 'minLength':
    case 'minItems':
      return bound === 1
    case 'maxLength':
      return typeof bound === 'number'
    case 'pattern':
      return typeof bound === 'string'
    case 'maximum':
      return typeof bound === 'number' && bound >= 1_000_000
    default:
      return false
  }
}

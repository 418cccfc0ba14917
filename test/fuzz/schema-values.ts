import type { Random } from '../helpers/random.js'
import { HOSTILE_TEXTS } from './mutate.js'

/** The parts of JSON Schema that tools use. */
export interface Schema {
  type?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  minimum?: number
  maximum?: number
}

/** Texts that mean something under a name. */
export type Words = Readonly<Record<string, readonly string[]>>

/** A value that the schema allows, or nearly so: what a careless client would send. */
export function fittingValue(random: Random, schema: Schema, words: Words, name = ''): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return random.pick(schema.enum)
  if (schema.anyOf !== undefined) return fittingValue(random, random.pick(schema.anyOf), words, name)
  switch (schema.type) {
    case 'object': {
      const wanted = Object.entries(schema.properties ?? {}).filter(
        ([key]) =>
          schema.required?.includes(key) || random.chance(key === '_kiki' || key === 'idempotency_key' ? 0.9 : 0.3),
      )
      return Object.fromEntries(wanted.map(([key, inner]) => [key, fittingValue(random, inner, words, key)]))
    }
    case 'array':
      return Array.from({ length: random.below(4) }, () => fittingValue(random, schema.items ?? {}, words, name))
    case 'boolean':
      return random.chance(0.5)
    case 'integer':
    case 'number':
      return random.chance(0.7) ? (schema.minimum ?? 0) + random.below(20) : (schema.maximum ?? 2 ** 31)
    default:
      return random.chance(0.1) ? random.pick(HOSTILE_TEXTS) : random.pick(words[name] ?? ['a', 'one', 'b c'])
  }
}

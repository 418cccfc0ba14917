import { z } from 'zod'
import { configSchema } from './schema.js'

/** One setting that has its own key and is neither a table nor, unless `list`, an array. */
export interface Leaf {
  path: readonly string[]
  key: string
  schema: z.ZodType
  list: boolean
}

type Key = string | number | symbol

/** A path as a person writes it: `mcp.tool_timeout_ms`, `permission.rules[0].pattern`, `profiles."a b".mode`. */
export function formatKey(path: readonly Key[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const name = String(part)
    const written = /^[A-Za-z0-9_*-]+$/.test(name) ? name : JSON.stringify(name)
    return text === '' ? written : `${text}.${written}`
  }, '')
}

/** The schema without the layers that give defaults. */
export function bare(schema: z.ZodType): z.ZodType {
  let inner: z.ZodType = schema
  for (;;) {
    if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodOptional) {
      inner = inner.unwrap() as z.ZodType
    } else if (inner instanceof z.ZodPipe) inner = inner.in as z.ZodType
    else return inner
  }
}

/** What may stand under a key: the fields of a table, or the one schema (`*`) of any name or index. */
export function fieldsOf(schema: z.ZodType): Record<string, z.ZodType> {
  const inner = bare(schema)
  if (inner instanceof z.ZodObject) return inner.shape as Record<string, z.ZodType>
  if (inner instanceof z.ZodRecord) return { '*': inner.valueType as z.ZodType }
  if (inner instanceof z.ZodArray) return { '*': inner.element as z.ZodType }
  return {}
}

/** The schema at a path, or undefined where no such key exists. */
export function schemaAt(path: readonly Key[]): z.ZodType | undefined {
  return path.reduce<z.ZodType | undefined>((schema, part) => {
    if (!schema) return undefined
    const fields = fieldsOf(schema)
    return Object.hasOwn(fields, part) ? fields[String(part)] : fields['*']
  }, configSchema)
}

/** Every setting; names of tables that the owner chooses stand as `*`. */
export function allLeaves(schema: z.ZodType = configSchema, path: readonly string[] = []): Leaf[] {
  return Object.entries(fieldsOf(schema)).flatMap(([name, field]) => {
    const here = [...path, name]
    const inner = bare(field)
    const isTable = inner instanceof z.ZodObject || inner instanceof z.ZodRecord
    if (isTable) return allLeaves(field, here)
    const list = inner instanceof z.ZodArray
    const below = list && bare(inner.element as z.ZodType) instanceof z.ZodObject ? allLeaves(field, here) : []
    return [{ path: here, key: formatKey(here), schema: field, list }, ...below]
  })
}

/** The settings that the environment and flags can give: single values under fixed names. */
export function scalarLeaves(): Leaf[] {
  return allLeaves().filter((leaf) => !leaf.list && !leaf.path.includes('*'))
}

/** `mcp.tool_timeout_ms` is `KIKI_MCP_TOOL_TIMEOUT_MS` (CF-03). */
export function variableOf(leaf: Leaf): string {
  return `KIKI_${leaf.path.join('_').toUpperCase()}`
}

import { z } from 'zod'
import { bare, fieldsOf, formatKey, schemaAt } from './keys.js'
import { nearest } from './nearest.js'
import type { ConfigProblem } from './problems.js'
import { configSchema, RIGHTS_KEYS, STRICT_TABLES } from './schema.js'
import type { TomlDocument } from './toml.js'
import type { KeyPath } from './toml-scan.js'

/**
 * Every fault of a parsed file, in the order of the file; unknown keys that are only warned of are removed from `data`.
 * Nothing else of `data` is changed (CF-02).
 */
export function checkFile(source: string, document: TomlDocument): ConfigProblem[] {
  const result = configSchema.safeParse(document.data, { error: plainWords })
  if (result.success) return []
  const problems = result.error.issues.flatMap((issue) => {
    const path = issue.path as KeyPath
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => unknownKey(source, document, [...path, key]))
    }
    return [badValue(source, document, path, issue)]
  })
  return problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
}

/** The fault of one value given as text (by a variable or a flag), or undefined. */
export function valueFault(schema: z.ZodType, value: unknown): string | undefined {
  const result = schema.safeParse(value, { error: plainWords })
  return result.success ? undefined : (result.error.issues[0]?.message ?? 'is not valid')
}

/** A value as an error quotes it: short, and never a document of its own. */
export function quoteValue(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value))
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

/** For what the schema itself has no words for. */
function plainWords(issue: { code?: string | undefined; expected?: unknown; input?: unknown }): string | undefined {
  if (issue.code !== 'invalid_type') return undefined
  if (issue.input === undefined) return 'is missing'
  return issue.expected === 'object' || issue.expected === 'record' ? 'must be a table' : undefined
}

function badValue(source: string, document: TomlDocument, path: KeyPath, issue: z.core.$ZodIssue): ConfigProblem {
  const value = valueAt(document.data, path)
  const key = formatKey(path)
  const nameFault = issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined
  const message = nameFault ?? (value === undefined ? 'is missing' : `${issue.message}, not ${quoteValue(value)}`)
  const place = nameFault === undefined ? document.locateValue(path) : document.locate(path)
  const problem: ConfigProblem = { severity: 'error', source, ...place, key, message: `${key} ${message}` }
  const schema = schemaAt(path)
  const options = schema && bare(schema)
  const near =
    options instanceof z.ZodEnum && typeof value === 'string' ? nearest(value, options.options.map(String)) : undefined
  if (near !== undefined) problem.hint = `did you mean "${near}"?`
  return problem
}

function unknownKey(source: string, document: TomlDocument, path: KeyPath): ConfigProblem {
  const place = document.locate(path)
  const near = nearestKey(path)
  const strict = bearsOnRights(path, near)
  if (!strict) removeAt(document.data, path)
  const key = formatKey(path)
  const message = strict ? `unknown key ${key}` : `unknown key ${key}, which is ignored`
  const siblings = Object.keys(fieldsAbove(path)).filter((name) => name !== '*')
  const hint = near === undefined ? `valid keys here: ${siblings.join(', ')}` : `did you mean ${formatKey(near)}?`
  const problem: ConfigProblem = { severity: strict ? 'error' : 'warning', source, ...place, key, message, hint }
  if (near !== undefined) problem.nearest = formatKey(near)
  return problem
}

/** The likeliest key beside the unknown one; for a table at the top, also one that belongs in a strict table. */
function nearestKey(path: KeyPath): KeyPath | undefined {
  const word = String(path.at(-1))
  const sibling = nearest(word, Object.keys(fieldsAbove(path)))
  if (sibling !== undefined) return [...path.slice(0, -1), sibling]
  if (path.length > 1) return undefined
  const table = STRICT_TABLES.find((name) => Object.hasOwn(fieldsAbove([name, word]), word))
  return table === undefined ? undefined : [table, word]
}

/**
 * Whether ignoring the key could give a client more than the owner meant: all of the strict tables,
 * and near misses of their names and keys anywhere else (`[permision]`, `[[rules]]`).
 */
function bearsOnRights(path: KeyPath, near: KeyPath | undefined): boolean {
  if (STRICT_TABLES.includes(String(path[0]))) return true
  if (near === undefined) return false
  if (STRICT_TABLES.includes(String(near[0]))) return true
  const general = near[0] === 'profiles' ? ['profiles', '*', ...near.slice(2)] : near
  const key = formatKey(general)
  return RIGHTS_KEYS.some((right) => key === right || key.startsWith(`${right}.`))
}

function fieldsAbove(path: KeyPath): Record<string, z.ZodType> {
  const above = schemaAt(path.slice(0, -1))
  return above ? fieldsOf(above) : {}
}

type Branch = Record<string | number, unknown>

function valueAt(data: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>((value, part) => {
    return typeof value === 'object' && value !== null && Object.hasOwn(value, part)
      ? (value as Branch)[part]
      : undefined
  }, data)
}

function removeAt(data: unknown, path: KeyPath): void {
  const parent = valueAt(data, path.slice(0, -1)) as Branch
  delete parent[path.at(-1) ?? '']
}

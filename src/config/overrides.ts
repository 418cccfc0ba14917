import { z } from 'zod'
import type { Environment } from './environment.js'
import { bare, type Leaf, scalarLeaves, variableOf } from './keys.js'
import { nearest } from './nearest.js'
import type { ConfigProblem } from './problems.js'
import { RIGHTS_KEYS, STRICT_TABLES } from './schema.js'
import { quoteValue, valueFault } from './validate.js'

/** A value given on the command line, as typed. */
export interface Flag {
  /** As the owner typed it: `--port`. */
  flag: string
  /** The key that it sets: `owner.port`. */
  key: string
  value: string
}

/** One valid value from outside the file. */
export interface Given {
  leaf: Leaf
  value: unknown
  origin: { from: 'environment'; variable: string } | { from: 'flag'; flag: string }
}

/** Reads the `KIKI_…` variable of every single-valued setting (CF-03); faults are added to `problems`. */
export function fromEnvironment(env: Environment, problems: ConfigProblem[]): Given[] {
  const leaves = scalarLeaves()
  problems.push(...misspelt(env, leaves))
  return leaves.flatMap((leaf) => {
    const variable = variableOf(leaf)
    const text = env[variable]
    if (text === undefined) return []
    const value = read(leaf, text, `environment variable ${variable}`, problems)
    return value === undefined ? [] : [{ leaf, value, origin: { from: 'environment', variable } }]
  })
}

/** Reads flags; a flag for a key that does not exist is a bug of the caller. */
export function fromFlags(flags: readonly Flag[], problems: ConfigProblem[]): Given[] {
  const leaves = scalarLeaves()
  return flags.flatMap(({ flag, key, value: text }) => {
    const leaf = leaves.find((one) => one.key === key)
    if (!leaf) throw new Error(`${flag} sets ${key}, which is no setting.`)
    const value = read(leaf, text, flag, problems)
    return value === undefined ? [] : [{ leaf, value, origin: { from: 'flag', flag } }]
  })
}

function read(leaf: Leaf, text: string, source: string, problems: ConfigProblem[]): unknown {
  const value = fromText(leaf.schema, text)
  const fault = text === '' ? 'must not be empty' : valueFault(leaf.schema, value)
  if (fault === undefined) return value
  const message = text === '' ? `${leaf.key} ${fault}` : `${leaf.key} ${fault}, not ${quoteValue(text)}`
  problems.push({ severity: 'error', source, key: leaf.key, message, hint: 'give a valid value, or leave it out' })
  return undefined
}

/** Text as the kind of value that the setting holds; text that is no such value stays text and fails the check. */
function fromText(schema: z.ZodType, text: string): unknown {
  const inner = bare(schema)
  if (inner instanceof z.ZodNumber) return /^-?\d{1,16}$/.test(text) ? Number(text) : text
  if (!(inner instanceof z.ZodBoolean)) return text
  if (/^(1|true)$/i.test(text)) return true
  return /^(0|false)$/i.test(text) ? false : text
}

/** Variables that nearly name a setting: an error where the setting bears on rights, else a warning (FC-C06). */
function misspelt(env: Environment, leaves: readonly Leaf[]): ConfigProblem[] {
  const byVariable = new Map(leaves.map((leaf) => [variableOf(leaf), leaf]))
  const shortNames = [...byVariable.keys()].map((variable) => variable.slice('KIKI_'.length))
  return Object.keys(env).flatMap((variable): ConfigProblem[] => {
    if (!/^KIKI_/i.test(variable) || byVariable.has(variable)) return []
    const near = nearest(variable.slice('KIKI_'.length), shortNames)
    const leaf = near === undefined ? undefined : byVariable.get(`KIKI_${near}`)
    if (!leaf) return []
    const rights = STRICT_TABLES.includes(leaf.path[0] ?? '') || RIGHTS_KEYS.includes(leaf.key)
    const source = `environment variable ${variable}`
    const message = rights ? 'unknown variable' : 'unknown variable, which is ignored'
    const hint = `did you mean KIKI_${near}?`
    return [{ severity: rights ? 'error' : 'warning', source, key: leaf.key, message, hint, nearest: leaf.key }]
  })
}

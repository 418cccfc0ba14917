import { isObject } from '../lib/json.js'
import { type Environment, environment } from './environment.js'
import { formatKey } from './keys.js'
import { type Flag, fromEnvironment, fromFlags, type Given } from './overrides.js'
import { ConfigError, type ConfigProblem } from './problems.js'
import { readText } from './read-text.js'
import { type Config, configSchema } from './schema.js'
import { type Position, parseToml, type TomlDocument } from './toml.js'
import type { KeyPath } from './toml-scan.js'
import { checkFile } from './validate.js'

/** Where a value came from (CF-03). */
export type Origin =
  | { from: 'default' }
  | { from: 'file'; file: string; line?: number; column?: number }
  | { from: 'environment'; variable: string }
  | { from: 'flag'; flag: string }

export interface LoadedConfig {
  config: Config
  /** Every value of `config` under its dotted key. */
  settings: readonly { key: string; value: unknown }[]
  /** By dotted key, one for each of `settings`. */
  origins: Readonly<Record<string, Origin>>
  /** Nothing that changes what a client may do. */
  warnings: readonly ConfigProblem[]
  /** Where a key is written in the file, for faults that are found later (PO-05). */
  locate(path: KeyPath): Position | undefined
}

export interface ConfigSources {
  /** Full path of `config.toml`; it need not exist. */
  file: string
  env?: Environment
  flags?: readonly Flag[]
}

/**
 * Reads the whole configuration: flag over environment over file over default (CF-03).
 * The file is only read, never written. Pure apart from that, so that a reload is another call.
 * @throws ConfigError with every fault; nothing falls back to a default because of one (CF-02).
 */
export async function loadConfig({ file, env = environment(), flags = [] }: ConfigSources): Promise<LoadedConfig> {
  return readConfig({ file, text: await readText(file), env, flags })
}

/** As {@link loadConfig}, on a text that is already read (undefined: there is no file). */
export function readConfig(sources: {
  file: string
  text: string | undefined
  env: Environment
  flags: readonly Flag[]
}): LoadedConfig {
  const { file, text, env, flags } = sources
  const problems: ConfigProblem[] = []
  const document = text === undefined ? undefined : readDocument(file, text, problems)
  const data = document?.data ?? {}
  const given: Given[] = [...fromEnvironment(env, problems), ...fromFlags(flags, problems)]
  if (problems.some((problem) => problem.severity === 'error')) throw new ConfigError(problems)
  const origins = new Map<string, Origin>()
  for (const { path } of leaves(data)) origins.set(formatKey(path), { from: 'file', file, ...document?.locate(path) })
  for (const { leaf, value, origin } of given) {
    setAt(data, leaf.path, value)
    origins.set(leaf.key, origin)
  }
  const config = configSchema.parse(data)
  const settings = leaves(config).map(({ path, value }) => ({ key: formatKey(path), value }))
  return {
    config,
    settings,
    origins: Object.fromEntries(settings.map(({ key }) => [key, origins.get(key) ?? { from: 'default' }])),
    warnings: problems,
    locate: (path) => document?.locate(path),
  }
}

function readDocument(file: string, text: string, problems: ConfigProblem[]): TomlDocument | undefined {
  try {
    const document = parseToml(file, text)
    problems.push(...checkFile(file, document))
    return document
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.push(...error.problems)
    return undefined
  }
}

/** The settings in a value: tables are walked, arrays are one setting each. */
function leaves(table: Record<string, unknown>, path: readonly string[] = []): { path: string[]; value: unknown }[] {
  return Object.entries(table).flatMap(([name, value]) => {
    const here = [...path, name]
    if (value === undefined) return []
    return isObject(value) ? leaves(value, here) : [{ path: here, value }]
  })
}

function setAt(data: Record<string, unknown>, [name, ...rest]: readonly string[], value: unknown): void {
  if (name === undefined) return
  if (rest.length === 0) {
    data[name] = value
    return
  }
  const table = data[name]
  if (isObject(table)) setAt(table, rest, value)
  else {
    const made = {}
    data[name] = made
    setAt(made, rest, value)
  }
}

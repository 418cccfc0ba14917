import { unwatchFile, watchFile } from 'node:fs'
import type { LoadedConfig } from '../config/load.js'
import { type ConfigProblem, formatProblem } from '../config/problems.js'
import type { Config } from '../config/schema.js'
import { readConfigRules, type StandingRules } from '../grants/standing-rules.js'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import type { ArgumentKind, Rule } from '../policy/rules.js'
import type { Lifecycle } from './endings.js'

/** What changed by reading `config.toml` again. */
export interface Reloaded {
  rules: number
  warnings: string[]
  /** Keys that changed and take a restart. */
  restart_for: string[]
  /** Unfinished operations that were cancelled because the rules became narrower (AP-08). */
  cancelled: number
}

export interface SettingsDeps {
  loaded: Pick<LoadedConfig, 'config' | 'locate'>
  /** Full path of `config.toml`. */
  file: string
  /** Undefined where a program that embeds Kiki gave the settings: they cannot be read again. */
  reload: (() => Promise<LoadedConfig>) | undefined
  rules: StandingRules
  argumentsOf: (tool: string) => ArgumentKind | undefined
  log: Log
}

/** How often the file is looked at, in milliseconds. */
const LOOK_MS = 2000

/** Tables that apply without a restart (CF-04). */
const LIVE: readonly (keyof Config)[] = ['permission', 'commands', 'approvals', 'profiles']

export type Settings = ReturnType<typeof createSettings>

/** The configuration in use. A bad new file keeps the old settings and says so (CF-04). @throws ConfigError for bad rules (PO-05). */
export function createSettings({ loaded, file, reload, rules, argumentsOf, log }: SettingsDeps) {
  let config = loaded.config
  const warn = (warnings: readonly ConfigProblem[]) => {
    for (const problem of warnings) log.warn({ problem: formatProblem(problem) }, 'configuration')
    return warnings.map(formatProblem)
  }
  const first = readConfigRules(file, loaded, argumentsOf)
  warn(first.warnings)
  rules.use(first.rules)
  let current: readonly Rule[] = first.rules

  /** @throws ConfigError; nothing is changed then. */
  async function readAgain(lifecycle: Pick<Lifecycle, 'policyChanged'>): Promise<Reloaded> {
    if (reload === undefined) {
      throw new KikiError(
        'conflict',
        'These settings were given by the program that runs Kiki: they cannot be read again.',
        {
          hint: 'Restart that program.',
        },
      )
    }
    const next = await reload()
    const read = readConfigRules(file, next, argumentsOf)
    const narrower = isNarrower({ config, rules: current }, { config: next.config, rules: read.rules })
    const restart = changedTables(config, next.config).filter((table) => !LIVE.includes(table))
    const kept = Object.fromEntries(restart.map((table) => [table, config[table]]))
    config = { ...next.config, ...kept }
    current = read.rules
    rules.use(read.rules)
    const { cancelled } = narrower ? await lifecycle.policyChanged() : { cancelled: 0 }
    const warnings = warn([...next.warnings, ...read.warnings])
    return { rules: read.rules.length, warnings, restart_for: restart, cancelled }
  }

  return {
    current: (): Config => config,
    reload: readAgain,
    /** Reads the file again whenever it was saved; returns the function that ends this. */
    watch(lifecycle: Pick<Lifecycle, 'policyChanged'>): () => void {
      if (reload === undefined) return () => {}
      const look = () => {
        readAgain(lifecycle).then(
          (done) => log.info({ ...done }, 'config.toml was read again'),
          (error: unknown) =>
            log.error({ error: messageOf(error) }, 'config.toml cannot be used; the old settings stay'),
        )
      }
      watchFile(file, { interval: LOOK_MS, persistent: false }, look)
      return () => unwatchFile(file, look)
    },
  }
}

interface Standing {
  config: Config
  rules: readonly Rule[]
}

/** Anything but an added allow makes another policy (AP-08). */
function isNarrower(before: Standing, after: Standing): boolean {
  const key = ({ decision, pattern, connection, workspace }: Rule) =>
    JSON.stringify([decision, pattern, connection, workspace])
  const old = new Set(before.rules.map(key))
  const now = new Set(after.rules.map(key))
  const added = after.rules.some((rule) => rule.decision !== 'allow' && !old.has(key(rule)))
  const removed = before.rules.some((rule) => !now.has(key(rule)))
  const others = JSON.stringify([before.config.commands, before.config.profiles])
  return added || removed || others !== JSON.stringify([after.config.commands, after.config.profiles])
}

function changedTables(before: Config, after: Config): (keyof Config)[] {
  return (Object.keys(after) as (keyof Config)[]).filter(
    (table) => JSON.stringify(before[table]) !== JSON.stringify(after[table]),
  )
}

import type { LoadedConfig } from '../config/load.js'
import type { ConfigProblem } from '../config/problems.js'
import { ConfigError } from '../config/problems.js'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import { type ArgumentKind, type Rule, type RuleSource, readRule } from '../policy/rules.js'
import type { OwnerRuleRow } from '../store/owner-rules.js'
import type { Store } from '../store/store.js'

export type StandingRules = ReturnType<typeof createStandingRules>

interface Deps {
  store: Store
  clock: Clock
  /** What a native tool's arguments are to a rule; undefined for a name that none has. */
  argumentsOf: (tool: string) => ArgumentKind | undefined
}

/** The rules of `config.toml` and those that the owner made by an answer, together (PO-02, AP-04). */
export function createStandingRules({ store, clock, argumentsOf }: Deps) {
  let fromConfig: readonly Rule[] = []
  let all: readonly Rule[] = []

  function refresh(): void {
    all = [...fromConfig, ...store.ownerRules.list().flatMap((row) => ruleOf(row, argumentsOf) ?? [])]
  }

  return {
    /** All of them; the same list until one changes. */
    current: (): readonly Rule[] => all,

    /** Takes the rules that {@link readConfigRules} found good. */
    use(rules: readonly Rule[]): void {
      fromConfig = rules
      refresh()
    },

    /** Within a transaction; call `refresh` once it stands. */
    insert(rule: { decision: 'allow'; pattern: string; connection: string; workspace: string }): void {
      const read = readRule(rule, 'an answer', argumentsOf)
      if ('problem' in read) throw new Error(`no rule can be made of it: ${read.problem}`)
      const { decision, pattern, connection: connection_id, workspace } = rule
      store.ownerRules.insert({ decision, pattern, connection_id, workspace, made_at: clock.now() })
    },

    refresh,

    listOwn: (): OwnerRuleRow[] => store.ownerRules.list(),

    /** @throws KikiError `not_found`. */
    async remove(id: number): Promise<void> {
      await store.commits.durable(() => {
        if (!store.ownerRules.remove(id)) {
          throw new KikiError('not_found', `There is no owner rule ${id}.`, {
            hint: 'List them with `kiki policy rules`.',
          })
        }
      })
      refresh()
    },
  }
}

function ruleOf(row: OwnerRuleRow, argumentsOf: Deps['argumentsOf']): Rule | undefined {
  const source: RuleSource = { decision: row.decision, pattern: row.pattern }
  if (row.connection_id !== null) source.connection = row.connection_id
  if (row.workspace !== null) source.workspace = row.workspace
  const rule = readRule(source, `owner rule ${row.id}`, argumentsOf)
  // Written by Kiki itself: one that an older version could read and this one cannot allows nothing.
  return 'problem' in rule ? undefined : rule
}

/**
 * Reads `[[permission.rules]]`. A bad `allow` is left out and told of; a bad `ask` or `deny` would leave open what the owner
 * wanted closed, so it is an error (PO-05). @throws ConfigError with file, line and column of every bad rule.
 */
export function readConfigRules(
  file: string,
  loaded: Pick<LoadedConfig, 'config' | 'locate'>,
  argumentsOf: Deps['argumentsOf'],
): { rules: Rule[]; warnings: ConfigProblem[] } {
  const rules: Rule[] = []
  const problems: ConfigProblem[] = []
  for (const [index, source] of loaded.config.permission.rules.entries()) {
    const at = loaded.locate(['permission', 'rules', index, 'pattern']) ?? loaded.locate(['permission', 'rules', index])
    const rule = readRule(source, `config.toml${at === undefined ? '' : `:${at.line}`}`, argumentsOf)
    if (!('problem' in rule)) rules.push(rule)
    else {
      const bad =
        source.decision === 'allow' ? 'this allow rule is left out' : `a bad ${source.decision} rule stops Kiki`
      problems.push({
        severity: source.decision === 'allow' ? 'warning' : 'error',
        source: file,
        ...(at === undefined ? {} : at),
        message: `${rule.problem} (${bad})`,
      } as ConfigProblem)
    }
  }
  if (problems.some(({ severity }) => severity === 'error')) throw new ConfigError(problems)
  return { rules, warnings: problems }
}

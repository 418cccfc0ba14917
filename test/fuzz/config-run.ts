import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../src/config/load.js'
import { ConfigError } from '../../src/config/problems.js'
import { readConfigRules } from '../../src/grants/standing-rules.js'
import { argumentsOf } from '../../src/tools/arguments-of.js'
import { createRandom, type Random } from '../helpers/random.js'
import type { RunOptions } from './bridge-run.js'
import type { FuzzWorld } from './fuzz-world.js'
import { HOSTILE_TEXTS, mutateBytes, mutateText, randomBytes } from './mutate.js'

const EXAMPLE = readFileSync(fileURLToPath(new URL('../../config.example.toml', import.meta.url)), 'utf8')
/** The example with its settings in force, not only described. */
const ACTIVE = EXAMPLE.replace(/^# ?(?=[a-z_]+ = |\[)/gm, '')
/** Far above any real reading, in milliseconds, on a busy machine. */
const READ_MS = 2000

/** Whatever else is wrong with a file, these stand or it is refused (FC-C03). */
const DENIALS = ['Write(secret/**)', 'Bash(rm *)', 'Read']
const DENIED = DENIALS.map((pattern) => `[[permission.rules]]\ndecision = "deny"\npattern = "${pattern}"\n`).join('')

/** GU-66 with configuration files. @returns how many were read. */
export async function fuzzConfigs({ world, faults }: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const random = createRandom(seed)
  const file = join(world.base, 'fuzzed.toml')
  for (let i = 0; i < inputs; i++) {
    const guarded = random.chance(0.4)
    const bytes = guarded ? Buffer.from(withFault(random)) : fileOf(random)
    writeFileSync(file, bytes)
    const fault = await read(file, guarded)
    if (fault !== undefined) faults.push(`${fault}: ${JSON.stringify(bytes.toString('latin1').slice(0, 2000))}`)
    if ((i + 1) % 5000 === 0) say(`${i + 1} configuration files`)
  }
  rmSync(file, { force: true })
  return inputs
}

async function read(file: string, guarded: boolean): Promise<string | undefined> {
  const began = performance.now()
  try {
    const loaded = await loadConfig({ file, env: {} })
    const { rules } = readConfigRules(file, loaded, argumentsOf)
    const left = rules.filter(({ decision }) => decision === 'deny').map(({ pattern }) => pattern)
    if (guarded && DENIALS.some((pattern) => !left.includes(pattern))) return `only ${left.join(', ')} are denied still`
  } catch (error) {
    if (!(error instanceof ConfigError))
      return `failed by a bug (${error instanceof Error ? error.stack : String(error)})`
    if (error.problems.length === 0 || error.message === '') return 'refused without a word'
    const lines = readFileSync(file, 'latin1').split('\n').length
    if (error.problems.some(({ line = 1 }) => line < 1 || line > lines))
      return `a place outside the file: ${error.message}`
  }
  if (performance.now() - began > READ_MS) return `took ${performance.now() - began} ms`
  return undefined
}

function fileOf(random: Random): Buffer {
  const kind = random.below(10)
  if (kind === 0) return randomBytes(random, random.below(400))
  if (kind < 4) return mutateBytes(random, Buffer.from(random.pick([EXAMPLE, ACTIVE, DENIED])))
  if (kind < 7) return Buffer.from(mutateText(random, random.pick([ACTIVE, DENIED])))
  if (kind === 7) return Buffer.from(`a = ${random.pick(['[', '{a=', '"', "'''"]).repeat(1 + random.below(3000))}`)
  return Buffer.from(Array.from({ length: random.below(12) }, () => lineOf(random)).join('\n'))
}

const TABLES = [
  'permission',
  'commands',
  'calls',
  'mcp',
  'owner',
  'log',
  'experimental',
  'profiles.x',
  'retention',
  'none',
]
const NAMES = [
  'rules',
  'wait_ms',
  'tool_timeout_ms',
  'port',
  'level',
  'days',
  'mode',
  'tools',
  'external_clients',
  'x',
  '"é"',
]

function lineOf(random: Random): string {
  const kind = random.below(4)
  if (kind === 0) return `[${random.pick(TABLES)}]`
  if (kind === 1) return `[[${random.pick(['permission.rules', 'calls', 'x.y'])}]]`
  if (kind === 2) return `${random.pick(['decision', 'pattern'])} = ${JSON.stringify(patternOf(random))}`
  return `${random.pick(NAMES)} = ${settingOf(random)}`
}

function patternOf(random: Random): string {
  return mutateText(
    random,
    random.pick(['deny', 'allow', 'Write(src/**)', 'Bash(git commit *)', 'mcp__*', 'Edit(**/{a,b}[!x]?)']),
  )
}

function settingOf(random: Random): string {
  const texts = [
    '"abc"',
    '-1',
    '1e400',
    '0x10',
    'true',
    '[]',
    '{}',
    'nan',
    '1979-05-27',
    '["a", 1]',
    '99999999999999999999',
  ]
  return random.chance(0.7) ? random.pick(texts) : JSON.stringify(random.pick(HOSTILE_TEXTS))
}

/** Good denials, and something wrong or odd in other tables, before or after them. */
function withFault(random: Random): string {
  const tables = ['calls', 'mcp', 'owner', 'log', 'experimental', 'retention', 'storage', 'none', 'profiles.x']
  const others = Array.from(
    { length: 1 + random.below(3) },
    () => `[${random.pick(tables)}]\n${random.pick(NAMES)} = ${settingOf(random)}\n`,
  )
  return random.chance(0.5) ? DENIED + others.join('') : others.join('') + DENIED
}

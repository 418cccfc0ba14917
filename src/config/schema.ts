import { z } from 'zod'
import type { LogLevel } from '../lib/log.js'

/** Classes of simple commands (CC-01). */
export const COMMAND_CLASSES = [
  'read_only',
  'file_write',
  'file_delete',
  'code_execution',
  'package_install',
  'network_egress',
  'process_control',
  'privilege_escalation',
  'system_change',
  'secret_access',
  'destructive',
  'unknown',
] as const

export const DECISIONS = ['allow', 'ask', 'deny'] as const

/** The longest timer that Node.js keeps, in milliseconds (KI-021). */
const MAX_TIMER_MS = 2 ** 31 - 1
/** A century: beyond it a date no longer fits the arithmetic of calendars. */
const MAX_DAYS = 36_500

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const satisfies readonly LogLevel[]

function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`
  return z.int({ error }).min(min, { error }).max(max, { error })
}

function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: `must be one of ${values.map((value) => `"${value}"`).join(', ')}` })
}

const flag = () => z.boolean({ error: 'must be true or false' })
const text = () => z.string({ error: 'must be a string' }).min(1, { error: 'must not be empty' })
const texts = () => z.array(text(), { error: 'must be an array of strings' })

const decision = () => oneOf(DECISIONS)

/** One standing rule (PO-02). What its pattern means is read in policy. */
const rule = z.strictObject({
  decision: decision(),
  pattern: text(),
  connection: text().optional(),
  workspace: text().optional(),
})

const classes = z.strictObject({
  read_only: decision().optional(),
  file_write: decision().optional(),
  file_delete: decision().optional(),
  code_execution: decision().optional(),
  package_install: decision().optional(),
  network_egress: decision().optional(),
  process_control: decision().optional(),
  privilege_escalation: decision().default('deny'),
  system_change: decision().optional(),
  secret_access: decision().optional(),
  destructive: decision().default('deny'),
  unknown: decision().optional(),
} satisfies Record<(typeof COMMAND_CLASSES)[number], z.ZodType>)

/** Results are answered inline up to these sizes (OP-13) and within this wait (OP-08); named as in a grant. */
const callLimits = {
  wait_ms: whole(0, 45_000),
  inline_text_limit: whole(1_000, 1_000_000),
  inline_media_limit: whole(1_000, 16_777_216),
}

const limits = z.strictObject({
  wait_ms: callLimits.wait_ms.optional(),
  inline_text_limit: callLimits.inline_text_limit.optional(),
  inline_media_limit: callLimits.inline_media_limit.optional(),
  concurrency: whole(1, 1_000).optional(),
  rate: whole(1, 100_000).optional(),
})

/** A named preset of a session; it narrows its connection, never widens it (GR-06). */
const profile = z.strictObject({
  mode: oneOf(['read-only', 'manual', 'auto-edit', 'full', 'yolo'])
    .transform((mode) => (mode === 'yolo' ? 'full' : mode))
    .optional(),
  tools: texts().optional(),
  instructions: text().optional(),
  model: text().optional(),
  limits: limits.optional(),
})

const PROFILE_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const DURATION = /^(none|[1-9]\d{0,4}[smhd])$/

/** Every key of `config.toml` with its limits and default; `config.example.toml` documents them (CF-01). */
export const configSchema = z.strictObject({
  permission: z
    .strictObject({
      rules: z.array(rule, { error: 'must be an array of tables, each begun by [[permission.rules]]' }).default([]),
      secret_files: texts().default([]),
      not_secret_files: texts().default([]),
    })
    .prefault({}),
  commands: z
    .strictObject({
      non_interactive: oneOf(['deny', 'allow']).default('deny'),
      pass_env: texts().default([]),
      windows_shell: oneOf(['powershell', 'git-bash']).default('powershell'),
      classes: classes.prefault({}),
    })
    .prefault({}),
  sandbox: z
    .strictObject({
      engine: oneOf(['auto', 'docker']).default('auto'),
      caches: texts().default([]),
      docker_image: text().default('node:22'),
      memory_mb: whole(64, 1_000_000).default(4_096),
      cpus: whole(1, 1_024).default(2),
      processes: whole(16, 1_000_000).default(512),
    })
    .prefault({}),
  approvals: z
    .strictObject({
      expiry: z
        .string()
        .regex(DURATION, { error: 'must be "none" or a duration such as "30m", "12h" or "7d"' })
        .default('none'),
    })
    .prefault({}),
  calls: z
    .strictObject({
      wait_ms: callLimits.wait_ms.default(20_000),
      inline_text_limit: callLimits.inline_text_limit.default(24_000),
      inline_media_limit: callLimits.inline_media_limit.default(1_048_576),
    })
    .prefault({}),
  retention: z
    .strictObject({ days: whole(1, MAX_DAYS).default(30), tombstone_days: whole(0, MAX_DAYS).default(30) })
    .prefault({}),
  storage: z
    .strictObject({
      operation_output_mb: whole(1, 1_000_000).default(256),
      total_output_mb: whole(1, 1_000_000).default(5_000),
    })
    .prefault({}),
  mcp: z
    .strictObject({
      startup_timeout_ms: whole(1, MAX_TIMER_MS).default(30_000),
      tool_timeout_ms: whole(1, MAX_TIMER_MS).default(60_000),
    })
    .prefault({}),
  owner: z.strictObject({ port: whole(0, 65_535).default(0) }).prefault({}),
  log: z.strictObject({ level: oneOf(LOG_LEVELS).default('info') }).prefault({}),
  experimental: z.strictObject({ external_clients: flag().default(true) }).prefault({}),
  profiles: z
    .record(
      z.string().regex(PROFILE_NAME, {
        error: 'is no profile name: use 1 to 64 letters, digits, "-" or "_", and begin with a letter or digit',
      }),
      profile,
    )
    .default({}),
})

export type Config = z.infer<typeof configSchema>
export type ConfigRule = Config['permission']['rules'][number]
export type Profile = Config['profiles'][string]
export type CommandClass = (typeof COMMAND_CLASSES)[number]
export type Decision = (typeof DECISIONS)[number]

/** In these tables an unknown key is an error, elsewhere a warning (CF-02). */
export const STRICT_TABLES: readonly string[] = ['permission', 'commands', 'sandbox']

/** Keys elsewhere that bear on what a client may do: a near miss of one of them is an error too (FC-C06). */
export const RIGHTS_KEYS: readonly string[] = [
  'experimental.external_clients',
  'profiles.*.mode',
  'profiles.*.tools',
  'profiles.*.limits',
]

import { z } from 'zod'
import { FAMILIES, MODES } from '../policy/modes.js'

const duration = z.number().int().min(0).max(45_000)
const mode = z.preprocess((value) => (value === 'yolo' ? 'full' : value), z.enum(MODES))
const toolPattern = z
  .string()
  .regex(/^[A-Za-z0-9_*-]{1,64}$/, 'is not a tool family, a tool name or a pattern such as mcp__*')

/** One place where a new chat may get a session of its own (SE-12). */
const template = z.strictObject({
  workspace: z.string().min(1),
  mode: mode.optional(),
  profile: z.string().optional(),
})

/** The fields of a connection that say what it may do (GR-02). Every default is the narrow one. */
export const grantSchema = z.strictObject({
  /** Families, tool names, or patterns of upstream tools. */
  tools: z.array(toolPattern).max(100).default(['files', 'search', 'media']),
  ceiling: mode.default('read-only'),
  allow_commands: z.boolean().default(false),
  memory: z.array(z.enum(['workspace', 'global'])).default(['workspace']),
  history: z.enum(['current', 'connection', 'workspace']).default('current'),
  exposure: z.enum(['direct', 'deferred', 'codemode']).default('direct'),
  /** Characters of text answered inline (OP-13). */
  inline_text_limit: z.number().int().min(1000).max(1_000_000).default(24_000),
  /** Bytes of media answered inline (OP-13). */
  inline_media_limit: z.number().int().min(1000).max(16_777_216).default(1_048_576),
  /** Milliseconds that a call waits for its end before it is answered by a receipt (OP-08). */
  wait_ms: duration.default(20_000),
  /** Longest wait that a call may ask for, in milliseconds; 45 s is below every known client's limit. */
  max_wait_ms: duration.default(45_000),
  /** Calls a minute; null is no limit. */
  rate: z.number().int().min(1).max(100_000).nullable().default(null),
  /** Calls that run at once; null is no limit. */
  concurrency: z.number().int().min(1).max(1000).nullable().default(null),
  idempotency: z.enum(['required', 'auto']).default('required'),
  sandbox: z.enum(['required', 'preferred', 'off']).default('required'),
  /** `off`, `on`, or the hosts that may be reached. */
  network: z.union([z.enum(['off', 'on']), z.array(z.string().min(1)).max(100)]).default('off'),
  /** Directories besides the workspace that file tools may touch. */
  dirs: z.array(z.string().min(1)).max(50).default([]),
  template: template.nullable().default(null),
})

export type Grant = z.output<typeof grantSchema>

/** Named starting points: plain fields that can be changed after (GR-03). */
export const PRESETS = {
  observer: { tools: ['files', 'search', 'media'], ceiling: 'read-only' },
  reviewer: { tools: ['files', 'search', 'media', 'history', 'tasks'], ceiling: 'manual' },
  editor: { tools: ['files', 'search', 'media', 'history', 'tasks'], ceiling: 'auto-edit' },
  operator: {
    tools: ['files', 'search', 'media', 'history', 'tasks', 'shell', 'browser'],
    ceiling: 'auto-edit',
    allow_commands: true,
    sandbox: 'required',
  },
} as const satisfies Record<string, z.input<typeof grantSchema>>

export type Preset = keyof typeof PRESETS

/** Whether the grant shares a tool; commands need `allow_commands` besides. */
export function shares(grant: Grant, tool: { name: string; family: string }): boolean {
  if (tool.family === 'shell' && !grant.allow_commands) return false
  return grant.tools.some((pattern) => matchesTool(pattern, tool))
}

function matchesTool(pattern: string, tool: { name: string; family: string }): boolean {
  if (FAMILIES.some((family) => family === pattern)) return tool.family === pattern
  if (!pattern.includes('*')) return tool.name === pattern
  const source = pattern.replace(/[-]/g, '\\-').replace(/\*+/g, '.*')
  return new RegExp(`^${source}$`).test(tool.name)
}

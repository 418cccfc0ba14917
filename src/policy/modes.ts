/** Kiki's own trusted class of a tool (design: "effect"). */
export type Effect = 'read' | 'write' | 'execute' | 'network' | 'control'

/** Tool families that a connection can share (GR-03). */
export const FAMILIES = ['files', 'search', 'shell', 'media', 'browser', 'agent', 'tasks', 'history', 'memory'] as const
export type Family = (typeof FAMILIES)[number]

/** Modes, least first (PO-01). */
export const MODES = ['read-only', 'manual', 'auto-edit', 'full'] as const
export type Mode = (typeof MODES)[number]

/** The lesser of a session's mode and its connection's ceiling: what counts at each call (PO-01). */
export function lesserMode(a: Mode, b: Mode): Mode {
  return MODES.indexOf(a) <= MODES.indexOf(b) ? a : b
}

/** Reads a mode as a person writes it; `yolo` is an alias of `full`. */
export function parseMode(value: string): Mode | undefined {
  if (value === 'yolo') return 'full'
  return MODES.find((mode) => mode === value)
}

export const DECISION_KINDS = ['allow', 'ask', 'deny'] as const
export type DecisionKind = (typeof DECISION_KINDS)[number]

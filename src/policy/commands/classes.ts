/** What a simple command can do, in the order in which classes are always listed (CC-01). */
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

export type CommandClass = (typeof COMMAND_CLASSES)[number]

/** The union of lists of classes, each once, in the order of {@link COMMAND_CLASSES}. */
export function unionOf(...lists: readonly (readonly CommandClass[])[]): CommandClass[] {
  const all = new Set(lists.flat())
  return COMMAND_CLASSES.filter((one) => all.has(one))
}

/** The classes of one simple command: `read_only` only where nothing else applies, `unknown` where nothing does. */
export function classesOf(found: readonly CommandClass[]): CommandClass[] {
  const more = unionOf(found).filter((one) => one !== 'read_only')
  if (more.length > 0) return more
  return found.length > 0 ? ['read_only'] : ['unknown']
}
